// npm runs this after it has installed the packages: scripts in a checkout then import the client
// under the name of the package, and get its source. `npm run build` replaces both files.
import { mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

process.chdir(fileURLToPath(new URL('..', import.meta.url)))
mkdirSync('dist/client', { recursive: true })
writeFileSync('dist/client/index.js', "export * from '../../client/index.ts'\n")
writeFileSync('dist/client/index.d.ts', "export * from '../../client/index.js'\n")
