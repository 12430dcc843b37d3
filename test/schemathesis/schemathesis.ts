import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { it } from 'node:test'
import { newFolder } from '../support/folder.ts'
import { authorized, startService } from '../support/service.ts'

/** The command, which `SCHEMATHESIS` may name: it often lies in an environment of its own. */
const command = process.env.SCHEMATHESIS ?? 'schemathesis'
const settings = import.meta.dirname
/** The number of generated requests for each operation, beside those of its other phases. */
const examples = process.env.SCHEMATHESIS_EXAMPLES ?? '50'

const isMissing = spawnSync(command, ['--version']).status !== 0
const skip = isMissing && 'Schemathesis is missing: pip install schemathesis, or set SCHEMATHESIS'

it('the service does what openapi.json says, as Schemathesis judges it', { skip }, async (t) => {
  const folder = newFolder()
  const service = await startService(`sqlite:${join(folder, 'plants.db')}`)
  const options = [
    `--config-file=${join(settings, 'schemathesis.toml')}`,
    'run',
    `${service.url}/openapi.json`,
    `--header=Authorization:${authorized.Authorization}`,
    `--max-examples=${examples}`,
    '--continue-on-failure',
    '--no-color',
  ]
  const env = { ...process.env, SCHEMATHESIS_HOOKS: join(settings, 'hooks.py') }
  const child = spawn(command, options, { cwd: folder, env, signal: t.signal })
  const [output, [exitCode]] = await Promise.all([text(child.stdout), once(child, 'close')])
  t.diagnostic(output.slice(output.lastIndexOf('Test cases:')))
  assert.equal(exitCode, 0, output)
})
