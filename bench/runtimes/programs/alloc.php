<?php
// N objects of 40 bytes without properties, the last 10,000 kept alive.
final class Cell {}
$n = (int) $argv[1];
$ring = array_fill(0, 10000, null);
for ($i = 0; $i < $n; $i++) { $ring[$i % 10000] = new Cell(); }
echo count($ring), "\n";
