/** Adds to dist what the compiler does not make: the files of the pages, and the licences. */
import { cpSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { collectLicenses, licensesName, writeLicenses } from '../src/cli/licenses.ts'

const root = join(import.meta.dirname, '..')
cpSync(join(root, 'web', 'files'), join(root, 'dist', 'web', 'files'), { recursive: true })
writeFileSync(join(root, 'dist', licensesName), writeLicenses(collectLicenses(root)))
