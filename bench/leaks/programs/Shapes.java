/** Keeps blocks of 100 bytes so that memory grows in a known shape: SHAPE N. */
import java.lang.ref.Cleaner;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.concurrent.ConcurrentSkipListMap;

public class Shapes {
    static final List<byte[]> kept = new ArrayList<>();
    static final byte[][] cache = new byte[20000][];
    static byte[] latest;
    /** A cache; a cleaner removes the entries whose objects are dead. */
    static final Map<Integer, WeakReference<byte[]>> weak = new ConcurrentSkipListMap<>();
    static Cleaner cleaner;
    /** A map without entries that still has the table for many. */
    static Map<Object, Object> emptied;

    public static void main(String[] words) {
        String shape = words[0];
        int n = Integer.parseInt(words[1]);
        if (shape.equals("base")) for (int i = 0; i < 300000; i++) kept.add(new byte[84]);
        if (shape.equals("weak")) cleaner = Cleaner.create();
        if (shape.equals("emptied")) emptied = new WeakHashMap<>(n);
        for (int i = 1; i <= n; i++) {
            byte[] block = new byte[84];
            latest = block;
            int root = (int) Math.sqrt(i);
            switch (shape) {
                case "leak", "base" -> kept.add(block);
                case "fifty" -> { if (i % 50 == 0) kept.add(block); }
                case "root" -> { if (root * root == i) kept.add(block); }
                case "cache" -> cache[i % cache.length] = block;
                case "log" -> { if ((i & (i - 1)) == 0) kept.add(new byte[65536]); }
                case "weak" -> {
                    int key = i;
                    weak.put(key, new WeakReference<>(block));
                    cleaner.register(block, () -> weak.remove(key));
                }
                default -> { }
            }
        }
    }
}
