import { chmodSync, cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { newFolder } from '../support/folder.ts'
import { releaseAfterTest } from '../support/release.ts'
import { must } from './needs.ts'
import { limits, type Podman } from './podman.ts'

const deploy = join(import.meta.dirname, '..', '..', 'deploy')

/**
 * Starts compose.yaml with podman-compose, by the steps of its comment. Certificates are Caddy's own, because nobody outside can
 * ask it for a proof.
 */
export function startStack(podman: Podman, ports: { http: number; https: number }) {
  const folder = newFolder('/var/tmp')
  cpSync(deploy, folder, { recursive: true })
  const caddyfile = join(folder, 'Caddyfile')
  const site = readFileSync(caddyfile, 'utf8')
  writeFileSync(caddyfile, site.replace('plants.example {', 'plants.example {\n\ttls internal'))
  const program = join(folder, 'podman-of-the-test')
  // Paths in compose.yaml are relative to the folder that podman-compose runs in.
  const command = podman.command.join(' ').replace(/--wd=\S+/, '--wd="$PWD"')
  writeFileSync(program, `#!/bin/sh\nexec ${command} "$@"\n`)
  chmodSync(program, 0o755)
  const docker = join(folder, 'docker')
  const flags = `--podman-path ${program} --podman-run-args='${limits.join(' ')}'`
  // The steps name Docker.
  writeFileSync(
    docker,
    `#!/bin/sh\nshift\nexport HTTP_PORT=${ports.http} HTTPS_PORT=${ports.https}\nexec podman-compose ${flags} --project-name plants "$@"\n`,
  )
  chmodSync(docker, 0o755)
  const text = readFileSync(join(folder, 'compose.yaml'), 'utf8')
  const steps = [...text.matchAll(/^# {3}(\S.*)$/gm)].map(([, step = '']) => step)
  const run = (script: string) =>
    must('sh', ['-e', '-c', `cd ${folder}\nPATH=${folder}:$PATH\n${script}`])
  releaseAfterTest(() => {
    run('docker compose down --volumes > down.log 2>&1 < /dev/null || true')
    // Networks are the machine's, and podman-compose leaves them behind.
    podman.try('network', 'rm', '--force', 'plants_default')
  })
  // The image is there already. What the containers inherit must not keep this process waiting.
  const up = steps.filter((step) => !step.includes(' exec '))
  try {
    run(`exec > up.log 2>&1 < /dev/null\n${up.join('\n').replace(' --build', '')}`)
  } catch (cause) {
    throw new Error(readFileSync(join(folder, 'up.log'), 'utf8'), { cause })
  }
  const token = readFileSync(join(folder, 'secrets/token'), 'utf8').trim()
  const name = (service: string) => `plants_${service}_1`
  return {
    /** The token of the operator. */
    token,
    /** Runs a command inside of a service, and answers its output. */
    exec: (service: string, ...command: string[]) => podman.run('exec', name(service), ...command),
    /** Gives Prometheus its token. */
    giveToken(made: string): void {
      writeFileSync(join(folder, 'secrets/metrics-token'), made)
    },
  }
}
