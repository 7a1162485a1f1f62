/** Keeps blocks of 100 bytes so that memory grows in a known shape: SHAPE N. */
import java.util.ArrayList;
import java.util.List;

public class Shapes {
    static final List<byte[]> kept = new ArrayList<>();
    static final byte[][] cache = new byte[20000][];
    static byte[] latest;

    public static void main(String[] words) {
        String shape = words[0];
        int n = Integer.parseInt(words[1]);
        if (shape.equals("base")) for (int i = 0; i < 300000; i++) kept.add(new byte[84]);
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
                default -> { }
            }
        }
    }
}
