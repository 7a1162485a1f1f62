// Prints where SARIF files break the schema of OASIS, one error in a line. Usage: sarif.mjs NODE_MODULES FILE…
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';

const [modules, ...files] = process.argv.slice(2);
const load = createRequire(join(resolve(modules), 'x'));
const schema = JSON.parse(readFileSync(join(modules, '@microsoft/jest-sarif/lib/schemas/sarif-2.1.0-rtm.5.json'), 'utf8'));
const checker = new (load('ajv'))({ allErrors: true, meta: false, schemaId: 'id' });
checker.addMetaSchema(load('ajv/lib/refs/json-schema-draft-04.json'));
const valid = checker.compile(schema);
for (const file of files) {
  if (!valid(JSON.parse(readFileSync(file, 'utf8')))) {
    valid.errors.forEach((one) => console.log(`${file}: ${one.dataPath} ${one.message}`));
  }
}
