import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;

/** The example cases that every SDK declares for sdk/conformance. */
public final class Conformance {
    static final class Input {
        boolean used;

        Input use() {
            if (used) {
                throw new IllegalStateException("the input was used already");
            }
            used = true;
            return this;
        }
    }

    static int linear(int h) {
        for (int i = 0; i < 1000; i++) {
            h = (h ^ i) * 16777619;
        }
        return h;
    }

    static int sleep(int x) {
        try {
            Thread.sleep(Long.MAX_VALUE);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
        return x;
    }

    static int spin(int x) {
        while (x > 0) {
            Thread.onSpinWait();
        }
        return x;
    }

    static int print(int x) {
        System.out.println("printed by a case");
        return x;
    }

    static int skip(int x) {
        throw new ScrupleBench.Skip("no such device");
    }

    static int deliberate(int x) {
        throw new IllegalArgumentException("a deliberate exception");
    }

    static int grow(int n) {
        int h = n;
        for (int i = 0; i < n; i++) {
            h = (h ^ i) * 16777619;
        }
        return h;
    }

    public static void main(String[] args) {
        ScrupleBench bench = new ScrupleBench();
        if (args.length == 1 && args[0].equals("many")) {
            for (int i = 0; i < 10_000; i++) {
                bench.ofInt(String.format("many/%05d", i), i, x -> x).param("index", i);
            }
            bench.run();
        }
        bench.ofInt("identity", 7, x -> x);
        bench.ofInt("linear", 7, Conformance::linear);
        bench.of("alloc/known", 4096, n -> new byte[n]).param("bytes", 4096);
        bench.ofInt("throws", 7, Conformance::deliberate);
        bench.ofInt("skips", 7, Conformance::skip);
        bench.ofInt("hangs/idle", 7, Conformance::sleep);
        bench.ofInt("hangs/busy", 7, Conformance::spin);
        bench.ofInt("threads/two", 7, Conformance::linear).threads(1, 2);
        bench.each("input/per-iteration", Input::new, Input::use).maxIterations(100);
        AtomicInteger setups = new AtomicInteger();
        bench.with("setup/counted", setups::incrementAndGet, n -> n).check(n -> null).digest(n -> "" + n);
        bench.ofInt("setup/throws", 7, x -> x).setup(() -> deliberate(0));
        bench.ofInt("check/passes", 7, x -> x).check(x -> null).digest(x -> "cafe");
        bench.ofInt("check/fails", 7, x -> x).check(x -> "deliberate");
        bench.ofInt("prints", 7, Conformance::print);
        for (int n : new int[] {0, 1, 2, 3, 10, 100}) {
            bench.ofInt("growth", n, Conformance::grow).param("n", n);
        }
        bench.ofInt("budgets", 7, x -> x).max("time.wall", 1_000_000).max("alloc.bytes", "+5%", "baseline");
        bench.ofInt("fields", 7, x -> x).group("another group").bytes(4096).tags("slow", "two words").fresh()
            .timeLimit(Duration.ofSeconds(5));
        bench.ofInt("names/\"quoted\" and \\backslash", 7, x -> x);
        bench.ofInt("names/tab\ttab", 7, x -> x);
        bench.ofInt("names/grün λ 東京 🐎", 7, x -> x);
        bench.ofInt("names/a//b/c", 7, x -> x);
        bench.run();
    }
}
