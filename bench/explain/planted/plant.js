// Hashes words in JavaScript. planted.py replaces the text between @.
"use strict";

function @HASH@(start, word) {
  for (let round = 0; round < @ROUNDS@; round++) start = (start * 31 + word) % 16777619;
  return start;
}

function parse(word) {
  for (let time = 0; time < @TIMES@; time++) {
    word = @HASH@(word, word);
    @EXTRA@;
  }
  return word;
}

let total = 0;
const words = Number(process.argv[2] || 2000);
for (let number = 0; number < words; number++) total ^= parse(number);
console.log(total === 1);
