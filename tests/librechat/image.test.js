// Runs programs that use what the sandbox image has through LibreChat's own, unmodified client:
// pandas, and jq, with which the client tells models to read results.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { createBashProgrammaticToolCallingTool, createProgrammaticToolCallingTool } from '@librechat/agents';

import { runner, tools } from './host.js';

const python = runner(createProgrammaticToolCallingTool, 'run_tools_with_code');
const bash = runner(createBashProgrammaticToolCallingTool, 'run_tools_with_bash');

test('pandas without an import', async () => {
  const host = tools({
    query_database: () => [
      { region: 'north', sales: 10 }, { region: 'south', sales: 5 }, { region: 'north', sales: 2.5 },
    ],
    write_to_sheet: ({ data }) => Object.keys(data.sales),
  });
  const code = `df = pd.DataFrame(await query_database(sql="SELECT * FROM sales"))
summary = df.groupby("region").sum()
print(summary.to_dict())
print(await write_to_sheet(data=summary.to_dict()))`;
  const message = await python({ code }, host);
  assert.equal(
    message.content,
    "stdout:\n{'sales': {'north': 12.5, 'south': 5.0}}\n['north', 'south']",
  );
  assert.deepEqual(host.ran, { query_database: 1, write_to_sheet: 1 });
});

test('jq in a script with several rounds and parallel calls', async () => {
  const host = tools({
    'list-cities': () => ['Paris', 'Rome', 'Oslo'],
    get_weather: ({ city }) => ({ city, degrees: city.length }),
    'save report': ({ text }) => `saved "${text}"`,
  });
  const code = `set -euo pipefail
for city in $(list_cities | jq -r '.[]'); do
    { weather=$(get_weather "{\\"city\\": \\"$city\\"}"); printf '%s\\n' "$weather" >"/tmp/$city"; } &
done
wait
cat /tmp/Paris /tmp/Rome /tmp/Oslo
total=$(cat /tmp/Paris /tmp/Rome /tmp/Oslo | jq -s 'map(.degrees) | add')
save_report "{\\"text\\": \\"Ça va $total ☀\\"}" | jq -r .`;
  const message = await bash({ code }, host);
  assert.equal(
    message.content.split('\nNote: ')[0],
    'stdout:\n{"city":"Paris","degrees":5}\n{"city":"Rome","degrees":4}\n{"city":"Oslo","degrees":4}\nsaved "Ça va 13 ☀"',
  );
  assert.deepEqual(host.ran, { 'list-cities': 1, get_weather: 3, 'save report': 1 });
  assert.match(message.artifact.session_id, /^[A-Za-z0-9_-]{21}$/);
  assert.deepEqual(message.artifact.files, []);
});

test('results that are JSON in a string', async () => {
  const host = tools({ query: () => '[{"name": "Ada"}]' });
  const message = await bash({ code: "query '{}' | jq -r '.[].name'" }, host);
  assert.equal(message.content, 'stdout:\nAda');
});
