<?php
// One cache lock of Laravel. Arguments: database or redis, the server's port, the name, the seconds. Prints "waiting", then
// "held OWNER" once it holds the lock. Command on standard input: "release" prints whether the library released the lock.

require 'Illuminate/Container/autoload.php';
require 'Illuminate/Database/autoload.php';
require 'Illuminate/Redis/autoload.php';
require 'Illuminate/Cache/autoload.php';

use Illuminate\Cache\DatabaseStore;
use Illuminate\Cache\RedisStore;
use Illuminate\Container\Container;
use Illuminate\Database\Capsule\Manager;
use Illuminate\Redis\RedisManager;

[, $kind, $port, $name, $seconds] = $argv;

function database_store(string $port): DatabaseStore
{
    $manager = new Manager();
    $manager->addConnection([
        'driver' => 'pgsql', 'host' => '127.0.0.1', 'port' => $port, 'database' => 'postgres', 'username' => 'postgres',
        'charset' => 'utf8',
    ]);
    // The second table of `artisan cache:table`.
    $schema = $manager->getConnection()->getSchemaBuilder();
    if (!$schema->hasTable('cache_locks')) {
        $schema->create('cache_locks', function ($table) {
            $table->string('key')->primary();
            $table->string('owner');
            $table->integer('expiration');
        });
    }

    return new DatabaseStore($manager->getConnection(), 'cache', 'app_cache_', 'cache_locks');
}

function redis_store(string $port): RedisStore
{
    $server = ['host' => '127.0.0.1', 'port' => (int) $port, 'database' => 0];

    return new RedisStore(new RedisManager(new Container(), 'phpredis', ['default' => $server]), 'app_cache');
}

$store = 'redis' === $kind ? redis_store($port) : database_store($port);
$lock = $store->lock($name, (int) $seconds);
echo "waiting\n";
$lock->block(60);
echo 'held ', $lock->owner(), "\n";
while (fgets(STDIN)) {
    echo var_export($lock->release(), true), "\n";
}
