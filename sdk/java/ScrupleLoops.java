import static java.lang.invoke.MethodType.methodType;

import java.io.IOException;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.function.*;

/**
 * The timed loops. They call the body through a method handle that is not a constant. JIT compilers inline a body that one
 * call has mostly seen, and then drop the loop around a trivial one; but they inline no handle that is not constant. So the
 * bodies of all cases and tares are called alike.
 */
final class ScrupleLoops {
    private ScrupleLoops() { }

    /** A loop around a body. */
    abstract static class Loop {
        final MethodHandle f;
        private boolean chained; // whether each iteration waits for the result of the previous one

        Loop(MethodHandle f, boolean chained) {
            this.f = f;
            this.chained = chained;
        }

        /** Runs the body this number of times. */
        abstract void run(long n) throws Throwable;

        /** Runs the body once, and returns its result. */
        abstract Object once() throws Throwable;

        boolean isChained() { return chained; }

        void unchain() { chained = false; }
    }

    /** The loop of a function of an int. */
    static final class Ints extends Loop {
        private static volatile MethodHandle same = ofInt(new SameInt()); // not final, since it would then be a constant
        private final int arg;

        Ints(MethodHandle f, int arg) {
            super(f, true);
            this.arg = arg;
        }

        static Ints tare(int arg) { return new Ints(same, arg); }

        @Override void run(long n) throws Throwable {
            if (isChained()) { chainedInts(f, arg, n); } else { ints(f, arg, n); }
        }

        @Override Object once() throws Throwable { return (int) f.invokeExact(arg); }
    }

    /** The loop of a function of a long. */
    static final class Longs extends Loop {
        private static volatile MethodHandle same = ofLong(new SameLong());
        private final long arg;

        Longs(MethodHandle f, long arg) {
            super(f, true);
            this.arg = arg;
        }

        static Longs tare(long arg) { return new Longs(same, arg); }

        @Override void run(long n) throws Throwable {
            if (isChained()) { chainedLongs(f, arg, n); } else { longs(f, arg, n); }
        }

        @Override Object once() throws Throwable { return (long) f.invokeExact(arg); }
    }

    /** The loop of a function of a double. */
    static final class Doubles extends Loop {
        private static volatile MethodHandle same = ofDouble(new SameDouble());
        private final double arg;

        Doubles(MethodHandle f, double arg) {
            super(f, true);
            this.arg = arg;
        }

        static Doubles tare(double arg) { return new Doubles(same, arg); }

        @Override void run(long n) throws Throwable {
            if (isChained()) { chainedDoubles(f, arg, n); } else { doubles(f, arg, n); }
        }

        @Override Object once() throws Throwable { return (double) f.invokeExact(arg); }
    }

    /** The loop of a function of an object, the one element of an array. */
    static final class Objects extends Loop {
        static volatile MethodHandle same = ofObject(new Same());
        private final Object[] arg;

        Objects(MethodHandle f, Object[] arg) {
            super(f, false);
            this.arg = arg;
        }

        static Objects tare(Object[] arg) { return new Objects(same, arg); }

        @Override void run(long n) throws Throwable { refuseStage(f, objects(f, arg[0], n)); }

        @Override Object once() throws Throwable { return (Object) f.invokeExact(arg[0]); }
    }

    /** The loop of a function that gets a new object for every iteration, of those in the one element of an array. */
    static final class Each extends Loop {
        private final Object[][] args;
        private final AtomicInteger next;

        Each(MethodHandle f, Object[][] args, AtomicInteger next) {
            super(f, false);
            this.args = args;
            this.next = next;
        }

        static Each tare(Object[][] args, AtomicInteger next) { return new Each(Objects.same, args, next); }

        @Override void run(long n) throws Throwable { refuseStage(f, each(f, args[0], next.getAndAdd((int) n), n)); }

        @Override Object once() throws Throwable { return (Object) f.invokeExact(args[0][0]); }
    }

    /** The loop of a function that returns a stage. */
    static final class Stages extends Loop {
        private static volatile MethodHandle complete = ofObject(new Complete());
        private final Object arg;

        Stages(MethodHandle f, Object arg) {
            super(f, false);
            this.arg = arg;
        }

        static Stages tare(Object arg) { return new Stages(complete, arg); }

        @Override void run(long n) throws Throwable { stages(f, arg, n); }

        @Override Object once() throws Throwable {
            return ((CompletionStage<?>) (Object) f.invokeExact(arg)).toCompletableFuture().join();
        }
    }

    // The bodies of tares. As a lambda would, each class implements one interface only.

    private static final class SameInt implements IntUnaryOperator {
        @Override public int applyAsInt(int x) { return x; }
    }

    private static final class SameLong implements LongUnaryOperator {
        @Override public long applyAsLong(long x) { return x; }
    }

    private static final class SameDouble implements DoubleUnaryOperator {
        @Override public double applyAsDouble(double x) { return x; }
    }

    private static final class Same implements Function<Object, Object> {
        @Override public Object apply(Object x) { return x; }
    }

    private static final class Complete implements Function<Object, Object> {
        @Override public Object apply(Object x) { return CompletableFuture.completedFuture(x); }
    }

    /** What one thread of a batch does. All threads begin at a barrier. */
    static final class Lane implements Runnable {
        private final Loop body;
        private final long n;
        private final Barrier barrier;
        private final boolean opens;
        long start, end, cpu, bytes;
        long waited = -1; // for a core, or -1 if the kernel does not tell
        Throwable thrown;

        /** One of the lanes opens the barrier; it is run by the thread that does so. */
        Lane(Loop body, long n, Barrier barrier, boolean opens) {
            this.body = body;
            this.n = n;
            this.barrier = barrier;
            this.opens = opens;
        }

        @Override
        public void run() {
            long id = Thread.currentThread().getId();
            long before = barrier.others > 0 ? waitedSoFar() : -1;
            try {
                bytes = -ScrupleBench.Beans.THREADS.getThreadAllocatedBytes(id);
                if (opens) {
                    barrier.open();
                } else {
                    barrier.stand();
                }
                cpu = -ScrupleBench.Beans.THREADS.getCurrentThreadCpuTime();
                start = System.nanoTime();
                body.run(n);
                end = System.nanoTime();
                cpu += ScrupleBench.Beans.THREADS.getCurrentThreadCpuTime();
                bytes += ScrupleBench.Beans.THREADS.getThreadAllocatedBytes(id);
                waited = before < 0 ? -1 : waitedSoFar() - before;
            } catch (Throwable e) {
                thrown = e;
            }
        }
    }

    /** The kernel's number of this thread; -1 if the kernel does not tell. */
    static long ownThread() {
        try {
            return Long.parseLong(Files.readSymbolicLink(Path.of("/proc/thread-self")).getFileName().toString());
        } catch (IOException | RuntimeException e) {
            return -1;
        }
    }

    /** How long this thread was ready but waited for a core so far, in ns; -1 if the kernel does not tell. */
    private static long waitedSoFar() {
        try {
            return Long.parseLong(Files.readString(Path.of("/proc/thread-self/schedstat")).split(" ")[1]);
        } catch (IOException | RuntimeException e) {
            return -1;
        }
    }

    /** A barrier that opens when all threads of a batch have a core at the same time, so that none starts late. */
    static final class Barrier {
        private static final int ANSWERS = 16; // the number of bits that count answers
        private static final long OPEN = -1;
        private static final long SPELL = 100_000; // ns that a thread spins before it naps, to be let run when it is awake
        private static final long NAP = 50_000;
        private static final long PROMPT = 2_000; // threads that answer within this time have a core
        private static final long PATIENCE = 5_000_000; // after which the barrier opens in any case
        private final int others;
        private final AtomicInteger here = new AtomicInteger();
        private final AtomicLong call = new AtomicLong(); // the number of a call and of its answers, or OPEN
        Barrier(int threads) { others = threads - 1; }

        /** Waits until all other threads are at the barrier. */
        void assemble() {
            while (here.get() < others) {
                Thread.onSpinWait();
            }
        }

        /** Calls the others until all answer promptly, and opens the barrier. */
        void open() {
            long began = System.nanoTime(), since = began;
            for (long number = 1; others > 0 && !answered(number) && since - began < PATIENCE; number++) {
                since = napIfDue(since);
            }
            call.set(OPEN);
        }

        private boolean answered(long number) {
            call.set(number << ANSWERS);
            long asked = System.nanoTime();
            while (true) {
                boolean all = call.get() == (number << ANSWERS | others);
                // The clock is read after the answers: this thread may have lost its core in between.
                boolean late = System.nanoTime() - asked >= PROMPT;
                if (all || late) {
                    return all && !late;
                }
            }
        }

        /** Answers calls until the barrier is open. */
        void stand() {
            here.incrementAndGet();
            long last = 0, since = System.nanoTime();
            for (long now = call.get(); now != OPEN; now = call.get()) {
                if (now >> ANSWERS == last) {
                    since = napIfDue(since);
                } else if (call.compareAndSet(now, now + 1)) {
                    last = now >> ANSWERS;
                }
            }
        }

        private static long napIfDue(long since) {
            if (System.nanoTime() - since < SPELL) {
                return since;
            }
            LockSupport.parkNanos(NAP);
            return System.nanoTime();
        }
    }

    private static volatile long sink;
    private static volatile double sinkDouble;
    private static volatile Object sinkObject;

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

    static Object objects(MethodHandle f, Object arg, long n) throws Throwable {
        Object result = null;
        for (long i = 0; i < n; i++) { result = (Object) f.invokeExact(arg); }
        return sinkObject = result;
    }

    static Object each(MethodHandle f, Object[] args, int from, long n) throws Throwable {
        Object result = null;
        for (int i = from; i < from + n; i++) { result = (Object) f.invokeExact(args[i]); }
        return sinkObject = result;
    }

    /** Refuses a body that returns before its work is done: its time would be that of starting the work. */
    private static void refuseStage(MethodHandle f, Object result) {
        if (f != Objects.same && (result instanceof CompletionStage || result instanceof Future)) {
            throw new IllegalStateException("the function returns a " + result.getClass().getSimpleName()
                + ", which nothing waits for: declare it with async(...), or return something else to time the call alone");
        }
    }

    static void stages(MethodHandle f, Object arg, long n) throws Throwable {
        Object result = null;
        for (long i = 0; i < n; i++) {
            result = ((CompletionStage<?>) (Object) f.invokeExact(arg)).toCompletableFuture().join();
        }
        sinkObject = result;
    }
}
