// Curator's InterProcessMutex, or its InterProcessReadWriteLock, on ZooKeeper. Waiters watch the node before theirs. One
// client for the process.

import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.retry.ExponentialBackoffRetry;

public class CuratorContestant extends Contestant {
    private CuratorFramework client;

    @Override
    void connect() throws Exception {
        client = CuratorFrameworkFactory.newClient(chosen.get("url"), 60000, 15000, new ExponentialBackoffRetry(100, 3));
        client.start();
        client.blockUntilConnected();
    }

    @Override
    Locks locks(String name) {
        if (!isShared()) return new Locks(wrap(new InterProcessMutex(client, "/" + name)), null);
        var both = new InterProcessReadWriteLock(client, "/" + name);
        return new Locks(wrap(both.writeLock()), wrap(both.readLock()));
    }

    private static Lock wrap(InterProcessMutex mutex) {
        return new Lock() {
            public void acquire() throws Exception { mutex.acquire(); }
            public void release() throws Exception { mutex.release(); }
        };
    }

    public static void main(String[] words) throws Exception {
        new CuratorContestant().play(words);
    }
}
