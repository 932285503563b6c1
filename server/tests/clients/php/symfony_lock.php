<?php
// One lock of Symfony. Arguments: PdoStore, DoctrineDbalStore, PostgreSqlStore or RedisStore; the server's port; the resource;
// "read" for a lock that is shared.
// Prints "waiting", then "held" once it holds the lock. Commands on standard input: "refresh", "release" and "acquired" print
// what the library answers: "done", a boolean, or the class of the exception.

require 'Symfony/Component/Lock/autoload.php';
require 'Doctrine/DBAL/autoload.php';

use Doctrine\DBAL\DriverManager;
use Symfony\Component\Lock\LockFactory;
use Symfony\Component\Lock\Store;

[, $kind, $port, $resource] = $argv;
$is_shared = ($argv[4] ?? '') === 'read';
$pdo = "pgsql:host=127.0.0.1;port=$port;dbname=postgres;user=postgres";
$store = match ($kind) {
    'PdoStore' => new Store\PdoStore($pdo),
    'DoctrineDbalStore' => new Store\DoctrineDbalStore(DriverManager::getConnection([
        'driver' => 'pdo_pgsql', 'host' => '127.0.0.1', 'port' => $port, 'dbname' => 'postgres', 'user' => 'postgres',
    ])),
    'PostgreSqlStore' => new Store\PostgreSqlStore($pdo),
    'RedisStore' => redis_store($port),
};

function redis_store(string $port): Store\RedisStore
{
    $redis = new Redis();
    $redis->connect('127.0.0.1', (int) $port);

    return new Store\RedisStore($redis);
}

$lock = (new LockFactory($store))->createLock($resource, 600, false);
echo "waiting\n";
$is_shared ? $lock->acquireRead(true) : $lock->acquire(true);
echo "held\n";
while ($line = fgets(STDIN)) {
    try {
        echo match (trim($line)) {
            'refresh' => $lock->refresh(),
            'release' => $lock->release(),
            'acquired' => var_export($lock->isAcquired(), true),
        } ?? 'done', "\n";
    } catch (Exception $error) {
        echo (new ReflectionClass($error))->getShortName(), "\n";
    }
}
