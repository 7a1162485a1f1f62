import static java.lang.invoke.MethodType.methodType;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.management.ManagementFactory;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.*;

/**
 * The timed loops. They call the body through a method handle that is not a constant. JIT compilers inline a body that one
 * call has mostly seen, and then drop the loop around a trivial one; but they inline no handle that is not constant. So the
 * bodies of all cases and tares are called alike.
 */
final class ScrupleLoops {
    private ScrupleLoops() { }

    /** A loop around a body, for a number of iterations. */
    interface Loop {
        void run(long n) throws Throwable;
    }

    /** One thread of a batch. All threads begin at a barrier. */
    static final class Lane extends Thread {
        private static final com.sun.management.ThreadMXBean THREADS =
            (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        private final Loop body;
        private final long n;
        private final AtomicInteger here;
        private final AtomicInteger open;
        long start, end, cpu, bytes;
        Throwable thrown;

        Lane(Loop body, long n, AtomicInteger here, AtomicInteger open) {
            this.body = body;
            this.n = n;
            this.here = here;
            this.open = open;
        }

        @Override
        public void run() {
            long id = Thread.currentThread().getId();
            try {
                bytes = -THREADS.getThreadAllocatedBytes(id);
                here.incrementAndGet();
                await(open, 1);
                cpu = -THREADS.getCurrentThreadCpuTime();
                start = System.nanoTime();
                body.run(n);
                end = System.nanoTime();
                cpu += THREADS.getCurrentThreadCpuTime();
                bytes += THREADS.getThreadAllocatedBytes(id);
            } catch (Throwable e) {
                thrown = e;
            }
        }
    }

    static void await(AtomicInteger counter, int n) {
        while (counter.get() < n) {
            Thread.onSpinWait();
        }
    }

    private static volatile long sink;
    private static volatile double sinkDouble;
    private static volatile Object sinkObject;
    // Not final, since they would then be constants.
    static volatile MethodHandle sameInt = ofInt(x -> x);
    static volatile MethodHandle sameLong = ofLong(x -> x);
    static volatile MethodHandle sameDouble = ofDouble(x -> x);
    static volatile MethodHandle same = ofObject(x -> x);
    static volatile MethodHandle complete = ofObject(CompletableFuture::completedFuture);

    // Zero, unknown to the compiler. Through it each argument depends on the previous result. The multiplications take
    // longer than the loop and the call, which run in parallel to them, so the time of an iteration is the chain's.
    private static volatile long zero;

    static MethodHandle ofInt(IntUnaryOperator f) {
        return handle(IntUnaryOperator.class, "applyAsInt", methodType(int.class, int.class), f);
    }

    static MethodHandle ofLong(LongUnaryOperator f) {
        return handle(LongUnaryOperator.class, "applyAsLong", methodType(long.class, long.class), f);
    }

    static MethodHandle ofDouble(DoubleUnaryOperator f) {
        return handle(DoubleUnaryOperator.class, "applyAsDouble", methodType(double.class, double.class), f);
    }

    static MethodHandle ofObject(Function<?, ?> f) {
        return handle(Function.class, "apply", methodType(Object.class, Object.class), f);
    }

    private static MethodHandle handle(Class<?> kind, String method, MethodType type, Object f) {
        try {
            return MethodHandles.publicLookup().findVirtual(kind, method, type).bindTo(f);
        } catch (ReflectiveOperationException e) {
            throw new AssertionError(e);
        }
    }

    static void ints(MethodHandle f, int arg, long n) throws Throwable {
        int result = 0;
        for (long i = 0; i < n; i++) { result = (int) f.invokeExact(arg); }
        sink = result;
    }

    static void chainedInts(MethodHandle f, int arg, long n) throws Throwable {
        int mask = (int) zero;
        int result = 0;
        for (long i = 0; i < n; i++) {
            int late = result * 3 + 1;
            late *= late;
            late *= late;
            late *= late;
            result = (int) f.invokeExact(arg + (late & mask));
        }
        sink = result;
    }

    static void longs(MethodHandle f, long arg, long n) throws Throwable {
        long result = 0;
        for (long i = 0; i < n; i++) { result = (long) f.invokeExact(arg); }
        sink = result;
    }

    static void chainedLongs(MethodHandle f, long arg, long n) throws Throwable {
        long mask = zero;
        long result = 0;
        for (long i = 0; i < n; i++) {
            long late = result * 3 + 1;
            late *= late;
            late *= late;
            late *= late;
            result = (long) f.invokeExact(arg + (late & mask));
        }
        sink = result;
    }

    static void doubles(MethodHandle f, double arg, long n) throws Throwable {
        double result = 0;
        for (long i = 0; i < n; i++) { result = (double) f.invokeExact(arg); }
        sinkDouble = result;
    }

    static void chainedDoubles(MethodHandle f, double arg, long n) throws Throwable {
        long mask = zero;
        double result = 0;
        for (long i = 0; i < n; i++) {
            long late = Double.doubleToRawLongBits(result) * 3 + 1;
            late *= late;
            late *= late;
            result = (double) f.invokeExact(arg + Double.longBitsToDouble(late & mask));
        }
        sinkDouble = result;
    }

    static void objects(MethodHandle f, Object arg, long n) throws Throwable {
        Object result = null;
        for (long i = 0; i < n; i++) { result = (Object) f.invokeExact(arg); }
        sinkObject = result;
    }

    static void each(MethodHandle f, Object[] args, int from, long n) throws Throwable {
        Object result = null;
        for (int i = from; i < from + n; i++) { result = (Object) f.invokeExact(args[i]); }
        sinkObject = result;
    }

    static void stages(MethodHandle f, Object arg, long n) throws Throwable {
        Object result = null;
        for (long i = 0; i < n; i++) {
            result = ((CompletionStage<?>) (Object) f.invokeExact(arg)).toCompletableFuture().join();
        }
        sinkObject = result;
    }
}
