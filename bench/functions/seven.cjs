// The seven functions under the package benchmark.
const { Suite } = require('benchmark')

const basis = -2128831035
const step = (h, octet) => Math.imul(h ^ octet, 16777619)
const four = h => step(step(step(step(h, 1), 2), 3), 4)
const steps = n => h => {
  for (let i = 0; i < n; i++) h = step(h, i & 255)
  return h
}

let result = 0
const suite = new Suite()
const add = (name, body) => suite.add(name, () => { result = body(basis) })
add('loop', () => 7)
add('id', h => h)
add('fnv1', h => step(h, 1))
add('fnv4', four)
add('fnv8', h => four(four(h)))
add('us', steps(1000))
add('ms', steps(1000000))
suite.on('cycle', event => console.log(`${event.target.name},${event.target.stats.mean * 1e9}`))
suite.run()
if (result === 1.5) console.log(result)
