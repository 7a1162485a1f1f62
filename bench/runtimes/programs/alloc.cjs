// N cells of two numbers, the last 10,000 kept alive.
class Cell { constructor(a, b) { this.a = a; this.b = b; } }
const n = Number(process.argv[2]);
const ring = new Array(10000).fill(null);
for (let i = 0; i < n; i++) ring[i % 10000] = new Cell(i, 1);
console.log(ring[7].b);
