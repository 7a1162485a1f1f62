// Functions that call themselves and each other. The tests replace the texts between @ by numbers.
"use strict";
function work(n) {
  let s = n;
  for (let i = 0; i < n; i++) s = (s * 31 + i) % 65537;
  return s;
}

// A tree. Each inner element is evaluated through dispatch.
function leaf(x) {
  let s = 0;
  for (let i = 0; i < @LEAF@; i++) s += i;
  return s;
}
function binary(x) {
  for (let i = 0; i < @AGAIN@; i++) evaluate(x[0]);
  return evaluate(x[0]) + evaluate(x[1]);
}
function dispatch(x) {
  work(4);
  return x ? binary(x) : leaf(x);
}
function evaluate(x) { return dispatch(x); }
function make(depth) { return depth ? [make(depth - 1), make(depth - 1)] : null; }
evaluate(make(6));

// The outer call evaluates a set, which is dear; those of compare evaluate one element each.
function attribute(i) { return work(5 + i % 3); }
function compare(i) { return (@DIRECT@ ? attribute(i) : step(0, i)) > 7; }
function choose(n) {
  let k = 0;
  for (let i = 0; i < n; i++) k += compare(i);
  return k;
}
function step(number, i) {
  if (number === 0) return attribute(i) + work(2);
  if (number === 1) {
    for (let i = 0; i < 90; i++) work(20);
    return choose(60);
  }
  return step(number - 1, i) + work(9);
}
step(3, 0);

const numbers = Array.from(Array(400).keys(), (i) => (i < 200 ? i : 600 - i));
function partition(low, high, pivot) {
  while (low <= high) {
    while (numbers[low] < pivot) low++;
    while (numbers[high] > pivot) high--;
    if (low <= high) {
      const one = numbers[low];
      numbers[low++] = numbers[high];
      numbers[high--] = one;
    }
  }
  return low;
}
function sort(low, high) {
  if (low >= high) return;
  const middle = partition(low, high, numbers[low + Math.floor((high - low) / @PIVOT@)]);
  sort(low, middle - 1);
  sort(middle, high);
}
sort(0, 399);

function even(n) {
  work(3);
  return n === 0 || odd(n - 1);
}
function odd(n) {
  work(2);
  return n !== 0 && even(n - 1);
}
function ask() { return even(@DEPTH@); }
for (let i = 0; i < 9; i++) ask();
