/** N cells of 24 bytes, the last 10,000 kept alive. */
public class Alloc {
  static final class Cell {
    final int a;
    final int b;
    final int c;

    Cell(int a, int b, int c) {
      this.a = a;
      this.b = b;
      this.c = c;
    }
  }

  public static void main(String[] words) {
    int n = Integer.parseInt(words[0]);
    Cell[] ring = new Cell[10000];
    for (int i = 0; i < n; i++) ring[i % 10000] = new Cell(i, i * 2, 3);
    System.out.println((long) ring[7].a + ring[7].b);
  }
}
