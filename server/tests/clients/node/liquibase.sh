# A migration of Liquibase that ends when it gets the advisory lock of its argument. Arguments: the server's port, the key.
# Prints Liquibase's log. Waiting runs try again every second, instead of every ten.
dist=node_modules/liquibase/dist
exec java -XX:TieredStopAtLevel=1 -Dliquibase.changelogLockPollRate=1 -Dkey="$2" \
  -cp "$dist/liquibase/liquibase.jar:$dist/liquibase/lib/*:$dist/drivers/*" \
  liquibase.integration.commandline.LiquibaseCommandLine \
  --url="jdbc:postgresql://127.0.0.1:$1/postgres" --username=postgres --changeLogFile=liquibase.sql --classpath=. \
  --log-level=info --hub-mode=off update 2>&1
