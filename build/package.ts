/** Adds what the compiler does not make: the files of the pages to dist, and the licences. */
import { cpSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { collectLicenses, licensesName, writeLicenses } from './licenses.ts'

const root = join(import.meta.dirname, '..')
cpSync(join(root, 'web', 'files'), join(root, 'dist', 'web', 'files'), { recursive: true })
writeFileSync(join(root, licensesName), writeLicenses(collectLicenses(root)))
