import java.util.concurrent.CompletableFuture;

/** Functions that return before their work is done: test.sh checks that only the one that is awaited is timed. */
public final class UnawaitedStage {
    public static void main(String[] args) {
        ScrupleBench bench = new ScrupleBench();
        bench.of("unawaited", 1, i -> CompletableFuture.supplyAsync(() -> i + 1));
        bench.each("each unawaited", () -> 1, i -> CompletableFuture.supplyAsync(() -> i + 1));
        bench.async("awaited", 1, i -> CompletableFuture.supplyAsync(() -> i + 1));
        bench.of("call alone", 1, i -> CompletableFuture.supplyAsync(() -> i + 1).isDone());
        bench.of("a stage as the argument", CompletableFuture.completedFuture(1), CompletableFuture::join);
        bench.run();
    }
}
