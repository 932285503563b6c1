//! Refuses the writes of a server that was suspended while the leases of its store were moved. The move could not detect that
//! server, which sent no heartbeat, and the server checks the mark of the store only when it starts.

use sqlx::postgres::PgConnection;

use crate::error::LeaseOpenError;

/// Created by a move, so that no other store has the cost. Without the mark, after a raised epoch, nothing is refused.
const REFUSE_WRITES: &str =
    "CREATE OR REPLACE FUNCTION leases_refuse_moved() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF EXISTS (SELECT FROM store_meta WHERE moved_to IS NOT NULL) THEN
            RAISE EXCEPTION 'the leases of this store were moved';
        END IF;
        RETURN NULL;
    END $$;
    DROP TRIGGER IF EXISTS leases_refuse_moved ON leases;
    CREATE TRIGGER leases_refuse_moved BEFORE INSERT OR UPDATE ON leases
        FOR EACH STATEMENT EXECUTE FUNCTION leases_refuse_moved()";

/// From here on no lease of a marked store is granted, renewed or ended. Waits for the transactions that do so now.
///
/// # Errors
/// The store does not answer.
pub(crate) async fn refuse_writes(connection: &mut PgConnection) -> Result<(), LeaseOpenError> {
    // One transaction.
    let statements = sqlx::raw_sql(REFUSE_WRITES);
    statements
        .execute(connection)
        .await
        .map(drop)
        .map_err(LeaseOpenError::Store)
}
