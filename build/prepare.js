// npm runs this after it has installed the packages: it compiles the client, which scripts in a
// checkout import under the name of the package. Without the compiler, as after
// `npm ci --omit=dev`, there is nothing to do.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

process.chdir(fileURLToPath(new URL('..', import.meta.url)))
const compiler = 'node_modules/typescript/bin/tsc'
if (existsSync(compiler)) {
  const args = [compiler, '--project', 'client/tsconfig.build.json']
  process.exitCode = spawnSync(process.execPath, args, { stdio: 'inherit' }).status ?? 1
}
