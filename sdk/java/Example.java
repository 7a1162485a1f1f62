import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import java.util.function.IntUnaryOperator;

/** The FNV-1a suite: steps that cost about as much as the tare, and loops of a microsecond and a millisecond. */
public final class Example {
    static int step(int h, int octet) {
        return (h ^ octet) * 16777619;
    }

    static int one(int x) {
        return step(0x811c9dc5, x & 255);
    }

    static int four(int x) {
        return step(step(step(step(0x811c9dc5, x & 255), x >> 8 & 255), x >> 16 & 255), x >>> 24);
    }

    static int eight(int x) {
        return step(step(step(step(four(x), x & 255), x >> 8 & 255), x >> 16 & 255), x >>> 24);
    }

    static IntUnaryOperator many(int octets) {
        return x -> {
            int h = 0x811c9dc5;
            for (int i = 0; i < octets; i++) {
                h = step(h, x >> 8 * (i & 3) & 255);
            }
            return h;
        };
    }

    public static void main(String[] args) {
        ScrupleBench bench = new ScrupleBench();
        int x = 0xdeadbeef;
        bench.ofInt("fnv/identity", x, i -> i);
        bench.ofInt("fnv/1 step", x, Example::one).bytes(1);
        bench.ofInt("fnv/4 steps", x, Example::four).bytes(4)
            .check(h -> h == many(4).applyAsInt(x) ? null : "the hash is " + h);
        bench.ofInt("fnv/8 steps", x, Example::eight).bytes(8).threads(1, 2);
        bench.ofInt("fnv/us", x, many(1000)).bytes(1000);
        bench.ofInt("fnv/ms", x, many(1_000_000)).bytes(1_000_000).tags("slow");
        bench.each("sort/nine numbers", () -> new int[] {5, 2, 9, 1, 7, 3, 8, 4, 6}, list -> {
            Arrays.sort(list);
            return list;
        }).items(9).max("alloc.bytes", 0);
        bench.with("strings/repeat", () -> "abc", s -> s.repeat(10)).param("times", 10).bytes(30);
        bench.async("future/another thread", 1, i -> CompletableFuture.supplyAsync(() -> i + 1));
        bench.run();
    }
}
