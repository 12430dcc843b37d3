import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { killAfterTest } from '../support/child.ts'
import { newFolder } from '../support/folder.ts'
import { releaseAfterTest } from '../support/release.ts'
import { waitUntil } from '../support/wait.ts'
import { must } from './needs.ts'

export type Podman = Awaited<ReturnType<typeof openPodman>>

/** What containers need on machines without control groups of their own. */
export const limits = [
  '--cgroups=disabled',
  '--ulimit=nofile=4096:4096',
  '--ulimit=nproc=4096:4096',
] as const

const hybrid = '/sys/fs/cgroup/unified'

/** Opens podman with images, volumes and secrets of its own, which are removed with the test. */
export async function openPodman() {
  const folder = newFolder('/var/tmp')
  // A chroot is enough to build in, and works inside of other containers.
  process.env.BUILDAH_ISOLATION = 'chroot'
  const command = [
    ...(await hideHybridGroups()),
    ...['podman', '--root', join(folder, 'storage'), '--runroot', join(folder, 'run')],
    ...['--storage-driver', 'vfs', '--cgroup-manager', 'cgroupfs'],
  ]
  const [program = '', ...flags] = command
  const run = (...args: string[]) => must(program, [...flags, ...args])
  releaseAfterTest(() => {
    spawnSync(program, [...flags, 'rm', '--all', '--force', '--time', '0'])
    spawnSync(program, [...flags, 'system', 'reset', '--force'])
  })
  return {
    /** Its command line, for programs that call it. */
    command,
    /** Runs podman to its end. Throws what it said if it fails. */
    run,
    /** Runs podman to its end, and answers its exit code. */
    try: (...args: string[]) => spawnSync(program, [...flags, ...args], { stdio: 'ignore' }).status,
    /** Makes an image of a folder. */
    importImage(name: string, root: string, ...changes: string[]): void {
      const archive = join(folder, 'image.tar')
      must('tar', ['--create', '--file', archive, '-C', root, '.'])
      run('import', ...changes.map((change) => `--change=${change}`), archive, name)
    },
  }
}

/**
 * crun refuses machines with both versions of control groups. It runs in a mount namespace without
 * the newer ones there; the prefix enters it.
 */
async function hideHybridGroups(): Promise<string[]> {
  if (!existsSync(hybrid)) return []
  const child = spawn('unshare', ['--mount', 'sh', '-c', `umount ${hybrid} && exec sleep infinity`])
  killAfterTest(child)
  const name = () => readFileSync(`/proc/${child.pid}/comm`, 'utf8').trim()
  await waitUntil(() => name() === 'sleep', 'the namespace is ready')
  return ['nsenter', '--target', `${child.pid}`, '--mount', `--wd=${process.cwd()}`]
}
