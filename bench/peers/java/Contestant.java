// What the contestants in Java share; see contestants/contestant.hpp for the conversation. A thread for each caller.

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Scanner;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Collectors;
import java.util.stream.DoubleStream;

abstract class Contestant {
    interface Lock {
        void acquire() throws Exception;
        void release() throws Exception;
    }

    record Locks(Lock writing, Lock reading) {} // reading: null if the lock is exclusive

    static final Map<String, String> chosen = new HashMap<>();

    abstract void connect() throws Exception;
    abstract Locks locks(String name);

    static boolean isShared() {
        return "shared".equals(chosen.get("kind"));
    }

    static int number(String name, int otherwise) {
        return chosen.containsKey(name) ? Integer.parseInt(chosen.get(name)) : otherwise;
    }

    static double now() {
        return System.nanoTime() / 1e3; // CLOCK_MONOTONIC
    }

    static double processorTime() {
        var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        return system.getProcessCpuTime() / 1e3;
    }

    static void pause(int micros) throws InterruptedException {
        if (micros > 0) Thread.sleep(micros / 1000, micros % 1000 * 1000);
    }

    static class Caller {
        final Locks locks;
        final Random dice;
        List<Double> taken, entered, left;
        int late;

        Caller(Locks locks, int number) {
            this.locks = locks;
            dice = new Random(number + 1);
        }

        Lock next() {
            boolean writes = locks.reading() == null || dice.nextInt(100) < number("writers", 0);
            return writes ? locks.writing() : locks.reading();
        }

        void work(double end, int section, int rest) throws Exception {
            taken = new ArrayList<>();
            entered = new ArrayList<>();
            left = new ArrayList<>();
            late = 0;
            while (now() < end) {
                Lock lock = next();
                double asked = now();
                lock.acquire();
                double inside = now();
                if (inside < end) pause(section);
                double leaving = now();
                lock.release();
                double outside = now();
                if (inside >= end) {
                    late++;
                    return;
                }
                taken.add(inside - asked + outside - leaving);
                entered.add(inside);
                left.add(leaving);
                pause(rest);
            }
        }
    }

    static String join(DoubleStream values) {
        return values.mapToObj(value -> String.format("%.1f", value)).collect(Collectors.joining(",", "[", "]"));
    }

    static void run(List<Caller> callers, double seconds, int section, int rest) throws Exception {
        var begin = new CountDownLatch(1);
        var end = new double[1];
        var threads = new ArrayList<Thread>();
        for (Caller each : callers) {
            var thread = new Thread(() -> {
                try {
                    begin.await();
                    each.work(end[0], section, rest);
                } catch (Exception problem) {
                    problem.printStackTrace();
                    System.exit(1);
                }
            });
            thread.start();
            threads.add(thread);
        }
        double cpu = processorTime();
        double start = now();
        end[0] = start + seconds * 1e6;
        begin.countDown();
        for (Thread each : threads) each.join();
        double elapsed = Math.min(now() - start, seconds * 1e6);
        print(callers, elapsed, processorTime() - cpu);
    }

    static void print(List<Caller> callers, double elapsed, double cpu) {
        double[] taken = callers.stream().flatMap(each -> each.taken.stream()).mapToDouble(x -> x).sorted().toArray();
        var line = new StringBuilder(String.format("{\"cycles\": %d, \"elapsed_us\": %.1f, \"cpu_us\": %.1f",
                                                   taken.length, elapsed, cpu));
        line.append(", \"late_cycles\": " + callers.stream().mapToInt(each -> each.late).sum());
        line.append(", \"shares\": " + join(callers.stream().mapToDouble(each -> each.taken.size())));
        if (taken.length > 0) {
            line.append(String.format(", \"p50_us\": %.1f, \"p99_us\": %.1f", taken[taken.length / 2],
                                      taken[taken.length * 99 / 100]));
        }
        if (number("visits", 0) == 1) {
            line.append(", \"entered_us\": " + join(callers.stream().flatMap(c -> c.entered.stream()).mapToDouble(x -> x)));
            line.append(", \"left_us\": " + join(callers.stream().flatMap(c -> c.left.stream()).mapToDouble(x -> x)));
            var visitors = DoubleStream.builder();
            for (int i = 0; i < callers.size(); i++) {
                for (Double ignored : callers.get(i).entered) visitors.add(i);
            }
            line.append(", \"visitor\": " + join(visitors.build()));
        }
        System.out.println(line.append("}"));
    }

    void play(String[] words) throws Exception {
        for (String word : words) {
            int sign = word.indexOf('=');
            chosen.put(word.substring(0, sign), word.substring(sign + 1));
        }
        connect();
        var callers = new ArrayList<Caller>();
        for (int i = 0; i < number("callers", 1); i++) {
            boolean one = "one".equals(chosen.get("names")) || isShared();
            callers.add(new Caller(locks(one ? "bench" : "bench-" + number("process", 0) + "-" + i), i));
        }
        new Caller(locks("warm-" + number("process", 0)), 0).work(now() + 3e6, 0, 0); // the compiler's warm-up
        System.out.println("ready");
        for (var input = new Scanner(System.in); input.hasNextLine();) {
            run(callers, Double.parseDouble(input.nextLine().split(" ")[1]), number("section_us", 0), number("rest_us", 0));
        }
        System.exit(0);
    }
}
