import java.io.*;
import java.lang.invoke.MethodHandle;
import java.lang.management.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.*;

/**
 * Declares cases for Scruple to weigh. Scruple starts the program, asks it for batches over two pipes and does all
 * sampling and statistics. This file names the cases, loops, and reads clocks and counters.
 */
public final class ScrupleBench {
    private final List<Case<?>> cases = new ArrayList<>();
    private Case<?> current; // for the reply to an exception in it

    /** Declares a function of an int. */
    public Case<Integer> ofInt(String name, int arg, IntUnaryOperator f) {
        MethodHandle g = ScrupleLoops.ofInt(f);
        return new Case<Integer>(name, "int -> int", new ScrupleLoops.Ints(g, arg), ScrupleLoops.Ints.tare(arg));
    }

    /** Declares a function of a long. */
    public Case<Long> ofLong(String name, long arg, LongUnaryOperator f) {
        MethodHandle g = ScrupleLoops.ofLong(f);
        return new Case<Long>(name, "long -> long", new ScrupleLoops.Longs(g, arg), ScrupleLoops.Longs.tare(arg));
    }

    /** Declares a function of a double. */
    public Case<Double> ofDouble(String name, double arg, DoubleUnaryOperator f) {
        MethodHandle g = ScrupleLoops.ofDouble(f);
        return new Case<Double>(name, "double -> double", new ScrupleLoops.Doubles(g, arg), ScrupleLoops.Doubles.tare(arg));
    }

    /** Declares a function of an object. */
    public <A, R> Case<R> of(String name, A arg, Function<? super A, ? extends R> f) {
        return ofObject(name, new Object[] {arg}, f);
    }

    /** Declares a function of an object that is made outside the timed part, at first use and after each reset. */
    public <A, R> Case<R> with(String name, Supplier<? extends A> input, Function<? super A, ? extends R> f) {
        Object[] arg = new Object[1];
        Case<R> c = ofObject(name, arg, f);
        c.input = () -> arg[0] = input.get();
        return c;
    }

    private <R> Case<R> ofObject(String name, Object[] arg, Function<?, ? extends R> f) {
        MethodHandle g = ScrupleLoops.ofObject(f);
        return new Case<R>(name, "Object -> Object", new ScrupleLoops.Objects(g, arg), ScrupleLoops.Objects.tare(arg));
    }

    /**
     * Declares a function that returns before its work is done. Each iteration waits for its stage to complete; the
     * tare's stage is complete when it is returned. No CPU time is read, because other threads do the work.
     */
    public <A, R> Case<R> async(String name, A arg, Function<? super A, ? extends CompletionStage<? extends R>> f) {
        MethodHandle g = ScrupleLoops.ofObject(f);
        Case<R> c = new Case<R>(name, "Object -> CompletionStage", new ScrupleLoops.Stages(g, arg),
            ScrupleLoops.Stages.tare(arg));
        c.elsewhere = true;
        return c;
    }

    /** Declares a function that gets a new object for every iteration, all of them made before the timed part. */
    public <A, R> Case<R> each(String name, Supplier<? extends A> input, Function<? super A, ? extends R> f) {
        Object[][] args = new Object[1][];
        AtomicInteger next = new AtomicInteger();
        MethodHandle g = ScrupleLoops.ofObject(f);
        Case<R> c = new Case<R>(name, "each Object -> Object", new ScrupleLoops.Each(g, args, next),
            ScrupleLoops.Each.tare(args, next));
        c.fill = n -> {
            args[0] = new Object[(int) n];
            for (int i = 0; i < n; i++) {
                args[0][i] = input.get();
            }
            next.set(0);
        };
        c.spec.put("per_iteration_input", true);
        return c.maxIterations(1000);
    }

    /** A declared case; its methods add to the declaration and return it. */
    public final class Case<R> {
        private final Map<String, Object> spec = new LinkedHashMap<>();
        private final int id = cases.size();
        private final ScrupleLoops.Loop body;
        private final ScrupleLoops.Loop tare;
        // Each of these may be null.
        private LongConsumer fill;
        private Runnable setup;
        private Runnable input;
        private Runnable teardown;
        private Function<? super R, String> check;
        private Function<? super R, String> digest;
        private long most = Long.MAX_VALUE;
        private boolean ready;
        private boolean elsewhere; // other threads do the work

        private Case(String name, String shape, ScrupleLoops.Loop body, ScrupleLoops.Loop tare) {
            this.body = body;
            this.tare = tare;
            spec.put("id", id);
            spec.put("name", name);
            spec.put("shape", shape);
            spec.put("timing", body.isChained() ? "latency" : "throughput");
            for (StackTraceElement frame : new Throwable().getStackTrace()) {
                if (!frame.getClassName().startsWith(ScrupleBench.class.getName())) {
                    // “+” would take milliseconds the first time.
                    String file = String.valueOf(frame.getFileName());
                    spec.put("source", file.concat(":").concat(Integer.toString(frame.getLineNumber())));
                    break;
                }
            }
            cases.add(this);
        }

        /** Times throughput: iterations do not wait for each other. The default for primitive types is latency. */
        public Case<R> throughput() {
            body.unchain();
            tare.unchain();
            return say("timing", "throughput");
        }

        private Case<R> say(String key, Object value) {
            spec.put(key, value);
            return this;
        }

        @SuppressWarnings("unchecked")
        private Case<R> add(String field, String key, Object value) {
            spec.putIfAbsent(field, new TreeMap<String, Object>());
            ((Map<String, Object>) spec.get(field)).put(key, value);
            return this;
        }

        /** Sets the group of the case in reports, which is by default the name up to its last slash. */
        public Case<R> group(String name) { return say("group", name); }
        /** Adds a parameter, a number or a string. Cases of one name must differ in their parameters. */
        public Case<R> param(String key, Object value) { return add("params", key, value); }
        /** Sets the number of bytes that one iteration processes. */
        public Case<R> bytes(long n) { return say("throughput", ScrupleLines.object("unit", "bytes", "amount", n)); }
        /** Sets the number of items that one iteration processes. */
        public Case<R> items(long n) { return say("throughput", ScrupleLines.object("unit", "items", "amount", n)); }
        /** Sets the numbers of threads to run the case with. Each thread runs all iterations. */
        public Case<R> threads(Integer... n) { return say("threads", List.of(n)); }
        /** Limits a metric per iteration, in its unit. */
        public Case<R> max(String metric, Number limit) { return add("budgets", metric, ScrupleLines.object("max", limit)); }
        /** Limits a metric relative to a reference, such as "+5%" against "baseline". */
        public Case<R> max(String metric, String limit, String against) {
            return add("budgets", metric, ScrupleLines.object("max", limit, "against", against));
        }
        /** Adds words by which cases can be selected. */
        public Case<R> tags(String... tags) { return say("tags", List.of(tags)); }
        /** Times the case in separate processes. */
        public Case<R> fresh() { return say("fresh", true); }
        /** Sets the maximum number of iterations of one batch. */
        public Case<R> maxIterations(int n) { most = n; return say("max_iterations", n); }
        /** Sets the time limit of one batch, after which the host ends the program. */
        public Case<R> timeLimit(Duration limit) { return say("time_limit", limit.toNanos()); }
        /** Sets what runs before the case is first used and after each reset, outside the timed part. */
        public Case<R> setup(Runnable f) { setup = f; return this; }
        /** Sets what undoes the setup, at a reset and at the end. */
        public Case<R> teardown(Runnable f) { teardown = f; return this; }
        /** Sets a check, which returns what is wrong with the result of one call, or null. */
        public Case<R> check(Function<? super R, String> f) { check = f; return say("checked", true); }
        /** Sets a function that makes a short text, by which the results of two versions are compared. */
        public Case<R> digest(Function<? super R, String> f) { digest = f; return this; }

        private void prepare() {
            if (!ready) {
                runIfAny(setup);
                runIfAny(input);
                ready = true;
            }
        }

        private void release() {
            if (ready) {
                ready = false;
                runIfAny(teardown);
            }
        }

        private void runIfAny(Runnable f) {
            if (f != null) {
                f.run();
            }
        }

        private void fill(long n) {
            if (fill != null) {
                fill.accept(n);
            }
        }

        @SuppressWarnings("unchecked")
        private Map<String, Object> runOnce() throws Throwable {
            prepare();
            fill(1);
            R result = (R) body.once();
            Map<String, Object> reply = ScrupleLines.object("once", id, "ok", true, "checked", check != null);
            if (digest != null) {
                reply.put("digest", digest.apply(result));
            }
            String wrong = check == null ? null : check.apply(result);
            if (wrong != null) {
                reply.putAll(ScrupleLines.object("ok", false, "why", wrong));
            }
            return reply;
        }
    }

    /** Answers the host until it sends bye, and does not return. Without a host it runs scruple on this program. */
    public void run() {
        refuseDuplicates();
        String from = System.getenv("SCRUPLE_BENCH_IN");
        String to = System.getenv("SCRUPLE_BENCH_OUT");
        if (from == null && to == null) {
            byHand();
        } else if (from == null || to == null) {
            leave("only one of SCRUPLE_BENCH_IN and SCRUPLE_BENCH_OUT is set");
        }
        try (InputStream in = new FileInputStream(from); OutputStream out = new FileOutputStream(to)) {
            ScrupleLines requests = new ScrupleLines(in);
            String line;
            while ((line = requests.readLine()) != null && !line.equals("bye")) {
                if (line.equals("cases")) {
                    list(out);
                }
                ScrupleLines.send(out, answer(line));
            }
            for (Case<?> c : cases) {
                try {
                    c.release();
                } catch (Throwable e) {
                    System.err.println(c.spec.get("name") + ": teardown: " + e);
                }
            }
            if (line != null) {
                ScrupleLines.send(out, ScrupleLines.json(ScrupleLines.object("bye", true)));
            }
        } catch (IOException e) {
            leave(e.getMessage());
        }
        System.exit(0);
    }

    /** Thrown if a request cannot be carried out. */
    @SuppressWarnings("serial")
    private static final class Refusal extends RuntimeException {
        final Map<String, Object> reply;

        Refusal(Object... pairs) {
            reply = ScrupleLines.object(pairs);
        }
    }

    /** Thrown by a case that cannot run here. Scruple shows it as skipped, with this reason. */
    @SuppressWarnings("serial") public static final class Skip extends RuntimeException {
        public Skip(String why) { super(why); }
    }

    private String answer(String line) {
        String[] words = ScrupleLines.parts(line, ' ');
        try {
            if (line.equals("cases")) {
                return ScrupleLines.json(ScrupleLines.object("end", "cases", "count", cases.size()));
            } else if (line.equals("loaded")) {
                return ScrupleLines.json(ScrupleCode.reply());
            } else if (words[0].equals("block") && words.length > 1) {
                return block(words);
            } else if (words.length == 2 && words[0].equals("hello") && number(words[1]) >= 0) {
                return ScrupleLines.json(hello());
            } else if (words.length == 2 && words[0].equals("once")) {
                current = find(words[1]);
                return ScrupleLines.json(current.runOnce());
            } else if (words.length == 2 && words[0].equals("reset")) {
                current = find(words[1]);
                current.release();
                current.prepare();
                return ScrupleLines.json(ScrupleLines.object("reset", current.id));
            }
            throw new Refusal("error", "unknown request: " + line, "kind", "request");
        } catch (Refusal e) {
            return ScrupleLines.json(e.reply);
        } catch (Throwable e) {
            String why = e.getMessage() == null ? e.toString() : e.getMessage();
            return ScrupleLines.json(ScrupleLines.object("error", why, "kind", e instanceof Skip ? "skipped" : "exception", "id", current.id));
        }
    }

    /** The JVM's beans, which take long to load: a thread loads them while the program declares its cases. */
    static final class Beans {
        static final com.sun.management.ThreadMXBean THREADS =
            (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        static final GarbageCollectorMXBean[] COLLECTORS =
            ManagementFactory.getGarbageCollectorMXBeans().toArray(new GarbageCollectorMXBean[0]);
    }

    static {
        Thread loader = new Thread() {
            @Override
            public void run() {
                Beans.THREADS.getCurrentThreadCpuTime();
            }
        };
        loader.setDaemon(true);
        loader.start();
    }

    private static Map<String, Object> hello() {
        Map<String, Object> wall = ScrupleLines.object("resolution", 1);
        Map<String, Object> cpu = ScrupleLines.object("resolution", 1, "scope", "thread");
        return ScrupleLines.object("scruple", 1, "sdk", "scruple-java 0.1.0", "language", "java",
            "runtime", String.join(" ", System.getProperty("java.vm.name"), System.getProperty("java.vm.version")),
            "clocks", ScrupleLines.object("time.wall", wall, "time.cpu", cpu), "features", List.of("threads", "loaded"),
            "counters", List.of(ScrupleLines.object("key", "alloc.bytes", "unit", "bytes", "quality", "exact"),
                ScrupleLines.object("key", "gc.count", "unit", "count", "quality", "near"),
                ScrupleLines.object("key", "gc.time", "unit", "ns", "quality", "near", "title", "collections, in whole milliseconds")));
    }

    private Case<?> find(String word) {
        long id = number(word);
        if (id >= cases.size()) {
            throw new Refusal("error", "no case " + word, "kind", "unknown-case", "id", id);
        }
        return cases.get((int) id);
    }

    private static long number(String word) {
        long value = word.isEmpty() || word.length() > 15 ? -1 : 0;
        for (int i = 0; value >= 0 && i < word.length(); i++) {
            int digit = word.charAt(i) - '0';
            value = digit < 0 || digit > 9 ? -1 : 10 * value + digit;
        }
        if (value < 0) {
            throw new Refusal("error", "not a number: " + word, "kind", "request");
        }
        return value;
    }

    /**
     * Runs the batches of a request. This code is run often, and what the compilers do for it keeps them from the cases: it
     * uses no streams, no regular expressions and no maps, and creates no threads that it does not need. Neither this code
     * nor a start uses lambdas or joins strings with “+”, each of which the virtual machine must prepare.
     */
    private String block(String[] words) throws Throwable {
        String[][] batches = new String[words.length - 1][];
        for (int i = 0; i < batches.length; i++) {
            batches[i] = validated(words[i + 1]);
        }
        for (String[] batch : batches) {
            current = find(batch[0]);
            current.prepare();
        }
        StringBuilder text = new StringBuilder("{\"block\":[");
        for (String[] batch : batches) {
            current = find(batch[0]);
            text.append(batch == batches[0] ? "{\"id\":" : ",{\"id\":").append(current.id);
            text.append(",\"kind\":\"").append(batch[1]).append('"');
            measure(text, current, batch[1], number(batch[2]), batch.length < 4 ? 1 : (int) number(batch[3]));
        }
        return text.append("],\"lost\":0}").toString();
    }

    private String[] validated(String word) {
        String[] parts = ScrupleLines.parts(word, ':');
        if (parts.length < 3 || parts.length > 4 || !(parts[1].equals("c") || parts[1].equals("t"))) {
            throw new Refusal("error", "not a batch: " + word, "kind", "request");
        }
        Case<?> c = find(parts[0]);
        long n = number(parts[2]);
        long threads = parts.length == 4 ? number(parts[3]) : 1;
        if (n < 1 || n > c.most || threads < 1 || threads > 10_000) {
            throw new Refusal("error", "iterations or threads out of bounds: " + word, "kind", "request", "id", c.id);
        }
        return parts;
    }

    /** Runs a batch on several threads; this one is the first, and the others wait at a barrier. Writes the readings. */
    private static void measure(StringBuilder text, Case<?> c, String kind, long n, int threads) throws Throwable {
        ScrupleLoops.Barrier barrier = new ScrupleLoops.Barrier(threads);
        ScrupleLoops.Loop body = kind.equals("c") ? c.body : c.tare;
        c.fill(n * threads);
        ScrupleLoops.Lane[] lanes = new ScrupleLoops.Lane[threads];
        Thread[] others = new Thread[threads - 1];
        for (int i = 0; i < threads; i++) {
            lanes[i] = new ScrupleLoops.Lane(body, n, barrier, i == 0);
        }
        for (int i = 1; i < threads; i++) {
            others[i - 1] = new Thread(lanes[i]);
            others[i - 1].start();
        }
        barrier.assemble();
        long collections = collections();
        long collecting = collecting();
        lanes[0].run();
        for (Thread other : others) {
            other.join();
        }
        for (ScrupleLoops.Lane lane : lanes) {
            if (lane.thrown != null) {
                throw lane.thrown;
            }
        }
        collections = collections() - collections;
        collecting = collecting() - collecting;
        long start = Long.MAX_VALUE, end = Long.MIN_VALUE, cpu = 0, bytes = 0;
        for (ScrupleLoops.Lane lane : lanes) {
            start = Math.min(start, lane.start);
            end = Math.max(end, lane.end);
            cpu += lane.cpu;
            bytes += lane.bytes;
        }
        field(text, "iterations", n * threads);
        field(text, "time.wall", end - start);
        field(text, "gc.count", collections);
        field(text, "gc.time", collecting * 1_000_000);
        if (!c.elsewhere) {
            field(text, "time.cpu", cpu);
            field(text, "alloc.bytes", bytes);
        }
        field(text, "thread", c.elsewhere || threads > 1 ? -1 : ScrupleLoops.ownThread());
        for (int i = 0; threads > 1 && i < threads; i++) {
            ScrupleLoops.Lane lane = lanes[i];
            text.append(i == 0 ? ",\"threads\":[{" : ",{").append("\"iterations\":").append(n);
            field(text, "time.wall", lane.end - lane.start);
            field(text, "time.cpu", lane.cpu);
            field(text, "waited", lane.waited);
            text.append(i == threads - 1 ? "}]" : "}");
        }
        text.append('}');
    }

    /** A number that is not known is below zero, and left out. */
    private static void field(StringBuilder text, String key, long value) {
        text.append(value < 0 ? "" : ",\"" + key + "\":" + value);
    }

    private static long collections() {
        long sum = 0;
        for (GarbageCollectorMXBean collector : Beans.COLLECTORS) {
            sum += collector.getCollectionCount();
        }
        return sum;
    }

    /** The time of all collections so far, in ms. */
    private static long collecting() {
        long sum = 0;
        for (GarbageCollectorMXBean collector : Beans.COLLECTORS) {
            sum += collector.getCollectionTime();
        }
        return sum;
    }

    /** Java cannot replace its process by another program, so it waits for that program and passes on its exit code. */
    private static void byHand() {
        List<String> itself = List.of("java", "…");
        try {
            // Arguments are decoded with the encoding with which they will be passed on.
            String encoding = System.getProperty("sun.jnu.encoding", "UTF-8");
            itself = List.of(new String(Files.readAllBytes(Path.of("/proc/self/cmdline")), encoding).split("\0"));
            if (System.getenv("SCRUPLE_BENCH_HAND") == null) {
                List<String> command = new ArrayList<>(List.of("scruple", "bench", "--"));
                command.addAll(itself);
                ProcessBuilder builder = new ProcessBuilder(command).inheritIO();
                builder.environment().put("SCRUPLE_BENCH_HAND", "1");
                System.exit(builder.start().waitFor());
            }
        } catch (IOException | InterruptedException e) { /* There is no scruple on the path. */ }
        leave("this is a bench program; run it with: scruple bench -- " + String.join(" ", itself));
    }

    private void refuseDuplicates() {
        Set<List<Object>> seen = new HashSet<>();
        for (Case<?> c : cases) {
            if (!seen.add(Arrays.asList(c.spec.get("name"), c.spec.get("params")))) {
                leave("two cases are called " + ScrupleLines.json(c.spec.get("name")) + " with the same params");
            }
        }
    }

    private static void leave(String why) {
        System.err.println(why);
        System.exit(2);
    }

    private void list(OutputStream out) throws IOException {
        OutputStream together = new BufferedOutputStream(out, 1 << 16);
        for (Case<?> c : cases) {
            ScrupleLines.send(together, ScrupleLines.json(ScrupleLines.object("case", c.spec)));
        }
        together.flush();
    }
}
