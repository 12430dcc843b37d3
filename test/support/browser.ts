import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Browser, chromium } from 'playwright-core'
import { releaseAfterFile } from './release.ts'

const root = join(import.meta.dirname, '..', '..')
const cache = join(root, 'node_modules', '.cache')
const unpacked = join(cache, 'chromium-147.0.0')

/** Why there is no browser on this machine; false if there is one. CI does not go without. */
export const browserMissing =
  process.platform === 'linux' && process.arch === 'x64' ? false : 'Chromium for Linux x64 only'

if (browserMissing && process.env.REQUIRE_BROWSER) throw new Error(browserMissing)

/**
 * Starts Chromium, once in a file; it is closed with the file. Pages of different tests belong in
 * different contexts (`browser.newContext()`). Unlike the settings that its package suggests,
 * these leave the rules of a browser in force, those on origins (CORS) above all.
 */
export function startBrowser(): Promise<Browser> {
  running ??= launch()
  return running
}

let running: Promise<Browser> | undefined

async function launch(): Promise<Browser> {
  if (!existsSync(unpacked)) await unpack()
  const browser = await chromium.launch({
    executablePath: join(unpacked, 'chromium'),
    args: ['--no-sandbox', '--disable-gpu'],
    env: {
      ...process.env,
      // The libraries and fonts that come with the package: a bare machine has none.
      LD_LIBRARY_PATH: join(unpacked, 'al2023', 'lib'),
      FONTCONFIG_FILE: join(unpacked, 'fonts.conf'),
    },
  })
  releaseAfterFile(() => browser.close())
  return browser
}

/** Unpacks the browser beside the packages, under its name only once it is complete. */
async function unpack(): Promise<void> {
  mkdirSync(cache, { recursive: true })
  const folder = mkdtempSync(join(cache, 'chromium-'))
  const script = `
    const { default: chromium } = await import('@sparticuz/chromium')
    await chromium.executablePath()`
  await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script], {
    cwd: root,
    // The name of a machine without libraries of its own makes the package unpack them, too.
    env: { TMPDIR: folder, AWS_EXECUTION_ENV: 'AWS_Lambda_nodejs22.x' },
  })
  writeFileSync(join(folder, 'fonts.conf'), toFontsConf(unpacked))
  try {
    renameSync(folder, unpacked)
  } catch {
    // Another test has unpacked it meanwhile.
    rmSync(folder, { recursive: true })
  }
}

/**
 * A configuration that names the unpacked fonts. The one in the package names fixed folders, which
 * are there only where something else has unpacked them, and Chromium ends without a font.
 */
function toFontsConf(folder: string): string {
  const escaped = folder.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
  return `<?xml version="1.0"?>
<fontconfig>
  <dir>${escaped}/fonts</dir>
  <cachedir>${escaped}/fonts-cache</cachedir>
</fontconfig>
`
}
