import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { killAfterTest } from '../support/child.ts'
import { waitUntil } from '../support/wait.ts'
import { copyDebian } from './images.ts'
import { must } from './needs.ts'

/** A fresh Debian with a running systemd. */
export type Machine = Awaited<ReturnType<typeof bootMachine>>

const path = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** Boots a copy of a fresh Debian. It has a network of its own, with nothing but loopback. */
export async function bootMachine() {
  const root = copyDebian('debian-12-systemd', ['systemd', 'systemd-sysv', 'dbus'])
  // There is no network to wait for.
  const wait = 'etc/systemd/system/systemd-networkd-wait-online.service'
  symlinkSync('/dev/null', join(root, wait))
  const child = spawn(
    'systemd-nspawn',
    ['--boot', '--register=no', '--keep-unit', '--private-network', `--directory=${root}`],
    { stdio: ['ignore', 'ignore', 'ignore'] },
  )
  killAfterTest(child)
  await once(child, 'spawn')
  const children = `/proc/${child.pid}/task/${child.pid}/children`
  const findLeader = () => readFileSync(children, 'utf8').trim()
  await waitUntil(() => findLeader() !== '', 'systemd-nspawn has started the machine')
  const leader = findLeader()
  const enter = ['--target', leader, '--all', 'env', '-i', `PATH=${path}`, 'sh', '-e', '-c']
  /** Runs a script as root. Throws what it said if it fails. */
  const run = (script: string) => must('nsenter', [...enter, `cd /root\n${script}`])
  await waitUntil(() => isBooted(run), 'systemd has booted')
  return {
    root,
    /** The command that runs another one in the network of the machine. */
    inNetwork: ['nsenter', '--target', leader, '--net'],
    run,
  }
}

function isBooted(run: (script: string) => string): boolean {
  try {
    return run('systemctl is-system-running --wait || true') === 'running\n'
  } catch {
    // Its sockets are not there yet.
    return false
  }
}

/** Copies files of the checkout into the machine. */
export function copyInto(root: string, from: string, to: string): void {
  cpSync(from, join(root, to), { recursive: true })
}
