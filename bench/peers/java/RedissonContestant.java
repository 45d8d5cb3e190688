// Redisson's RLock, or its RReadWriteLock. A waiter is woken by a message and then competes; a held lock is renewed
// every 10 s. One client for the process, with its defaults.

import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

public class RedissonContestant extends Contestant {
    private RedissonClient client;

    @Override
    void connect() {
        Config config = new Config();
        config.useSingleServer().setAddress(chosen.get("url"));
        client = Redisson.create(config);
    }

    @Override
    Locks locks(String name) {
        if (!isShared()) return new Locks(wrap(client.getLock(name)), null);
        var both = client.getReadWriteLock(name);
        return new Locks(wrap(both.writeLock()), wrap(both.readLock()));
    }

    private static Lock wrap(RLock lock) {
        return new Lock() {
            public void acquire() { lock.lock(); }
            public void release() { lock.unlock(); }
        };
    }

    public static void main(String[] words) throws Exception {
        new RedissonContestant().play(words);
    }
}
