// Hashes words in JavaScript by functions without a name that built-in methods call. planted.py replaces the text
// between @.
"use strict";

function @HASH@(start, word) {
  return [...Array(@ROUNDS@).keys()].reduce((sum) => (sum * 31 + word) % 16777619, start);
}

function parse(word) {
  [...Array(@TIMES@).keys()].forEach(() => {
    word = @HASH@(word, word);
    @EXTRA@;
  });
  return word;
}

const words = Number(process.argv[2] || 2000);
const total = [...Array(words).keys()].map((number) => parse(number)).reduce((sum, one) => sum ^ one, 0);
console.log(total === 1);
