import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.*;

/**
 * The timed loops. They call the body through an interface whose call site has seen several classes, so that the JIT
 * compiler can neither inline, hoist nor drop the body, nor favour the first case. The identities are not final, so
 * that the compiler does not know them either.
 */
final class ScrupleLoops {
    private ScrupleLoops() { }

    private static volatile long sink;
    private static volatile double sinkDouble;
    private static volatile Object sinkObject;
    static volatile IntUnaryOperator sameInt = x -> x;
    static volatile LongUnaryOperator sameLong = x -> x;
    static volatile DoubleUnaryOperator sameDouble = x -> x;
    static volatile Function<Object, Object> same = x -> x;
    static volatile Function<Object, Object> complete = CompletableFuture::completedFuture;

    // Zero, unknown to the compiler. Through it each argument depends on the previous result. The multiplications take
    // longer than the loop and the call, which run in parallel to them, so the time of an iteration is the chain's.
    private static volatile long zero;

    static void ints(IntUnaryOperator f, int arg, long n) {
        int result = 0;
        for (long i = 0; i < n; i++) { result = f.applyAsInt(arg); }
        sink = result;
    }

    static void chainedInts(IntUnaryOperator f, int arg, long n) {
        int mask = (int) zero;
        int result = 0;
        for (long i = 0; i < n; i++) {
            int late = result * 3 + 1;
            late *= late;
            late *= late;
            late *= late;
            result = f.applyAsInt(arg + (late & mask));
        }
        sink = result;
    }

    static void longs(LongUnaryOperator f, long arg, long n) {
        long result = 0;
        for (long i = 0; i < n; i++) { result = f.applyAsLong(arg); }
        sink = result;
    }

    static void chainedLongs(LongUnaryOperator f, long arg, long n) {
        long mask = zero;
        long result = 0;
        for (long i = 0; i < n; i++) {
            long late = result * 3 + 1;
            late *= late;
            late *= late;
            late *= late;
            result = f.applyAsLong(arg + (late & mask));
        }
        sink = result;
    }

    static void doubles(DoubleUnaryOperator f, double arg, long n) {
        double result = 0;
        for (long i = 0; i < n; i++) { result = f.applyAsDouble(arg); }
        sinkDouble = result;
    }

    static void chainedDoubles(DoubleUnaryOperator f, double arg, long n) {
        long mask = zero;
        double result = 0;
        for (long i = 0; i < n; i++) {
            long late = Double.doubleToRawLongBits(result) * 3 + 1;
            late *= late;
            late *= late;
            result = f.applyAsDouble(arg + Double.longBitsToDouble(late & mask));
        }
        sinkDouble = result;
    }

    static void objects(Function<Object, Object> f, Object arg, long n) {
        Object result = null;
        for (long i = 0; i < n; i++) { result = f.apply(arg); }
        sinkObject = result;
    }

    static void each(Function<Object, Object> f, Object[] args, int from, long n) {
        Object result = null;
        for (int i = from; i < from + n; i++) { result = f.apply(args[i]); }
        sinkObject = result;
    }

    static Object stages(Function<Object, Object> f, Object arg, long n) {
        Object result = null;
        for (long i = 0; i < n; i++) { result = ((CompletionStage<?>) f.apply(arg)).toCompletableFuture().join(); }
        sinkObject = result;
        return result;
    }

    static void showClasses() {
        List<IntUnaryOperator> ints = List.of(x -> x + 1, x -> x + 2, sameInt);
        List<LongUnaryOperator> longs = List.of(x -> x + 1, x -> x + 2, sameLong);
        List<DoubleUnaryOperator> doubles = List.of(x -> x + 1, x -> x + 2, sameDouble);
        List<Function<Object, Object>> objects = List.of(x -> null, x -> "", same);
        CompletableFuture<Object> done = CompletableFuture.completedFuture("");
        List<Function<Object, Object>> stages = List.of(x -> done, x -> done.copy(), complete);
        Object[] args = new Object[8];
        for (int i = 0; i < 6000; i++) {
            ints(ints.get(i % 3), i, 8);
            chainedInts(ints.get(i % 3), i, 8);
            longs(longs.get(i % 3), i, 8);
            chainedLongs(longs.get(i % 3), i, 8);
            doubles(doubles.get(i % 3), i, 8);
            chainedDoubles(doubles.get(i % 3), i, 8);
            objects(objects.get(i % 3), args, 8);
            each(objects.get(i % 3), args, 0, 8);
            stages(stages.get(i % 3), args, 8);
        }
    }
}
