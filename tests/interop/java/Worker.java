// Redisson's locks as a worker beside holdfast; ../run has the conversation. Its keys have a form of their own, so the
// two cannot share a lock: what is tested is that each says so and changes nothing.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.RedisException;
import org.redisson.config.Config;

public class Worker {
    public static void main(String[] arguments) throws Exception {
        Map<String, String> words = new HashMap<>();
        for (String word : arguments) words.put(word.substring(0, word.indexOf('=')), word.substring(word.indexOf('=') + 1));
        Config config = new Config();
        config.useSingleServer().setAddress("redis://" + words.get("address")).setConnectionMinimumIdleSize(1);
        RedissonClient server = Redisson.create(config);
        RLock lock = server.getLock(words.get("key"));
        RLock reader = server.getReadWriteLock(words.get("key")).readLock();
        System.out.println("ready");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            switch (line) {
                case "hold" -> tell(lock);
                case "hold-read" -> tell(reader);
                case "try" -> tell(lock);
                case "release" -> { lock.unlock(); System.out.println("released"); }
                case "release-read" -> { reader.unlock(); System.out.println("released"); }
                default -> System.out.println("what is " + line + "?");
            }
        }
        server.shutdown();
    }

    private static void tell(RLock lock) throws InterruptedException {
        try {
            System.out.println(lock.tryLock(0, 60, TimeUnit.SECONDS) ? "acquired" : "held by another");
        } catch (RedisException refused) {
            System.out.println("refused: " + refused.getMessage());
        }
    }
}
