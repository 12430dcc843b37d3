import { installPackages } from '../test/support/packages.ts'

/** Installs the baseline's framework and the peers into bench/node_modules on first use. */
export async function installPeers(progress: (text: string) => void): Promise<void> {
  progress('installing into bench/node_modules, if the lockfile has changed (npm ci)')
  await installPackages(import.meta.dirname)
}
