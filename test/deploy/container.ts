/**
 * The image, built from a clean clone and run as the Containerfile says. It needs root, podman,
 * crun, netavark, aardvark-dns and debootstrap, for compose.yaml also podman-compose, and takes ten
 * minutes.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { newFolder } from '../support/folder.ts'
import { findFreePort, newCluster, startServer } from '../support/postgres.ts'
import { releaseAfterTest } from '../support/release.ts'
import { waitUntil } from '../support/wait.ts'
import { startStack } from './compose.ts'
import { importDistroless, importNode, importServers } from './images.ts'
import { findMissing, must } from './needs.ts'
import { limits, openPodman, type Podman } from './podman.ts'
import { callSite } from './site.ts'
import { startWriter } from './writer.ts'

const skip = findMissing('root', 'podman', 'crun', 'debootstrap', 'nsenter')
const noCompose = findMissing('podman-compose')

const checkout = join(import.meta.dirname, '..', '..')
const token = 'a-token-for-the-container'
const health = ['healthcheck', 'run']

describe('the container image', { skip }, () => {
  let podman: Podman
  let url = ''
  let port = 0

  before(async () => {
    podman = await openPodman()
    importNode(podman.importImage)
    importDistroless(podman.importImage)
    const clone = join(newFolder('/var/tmp'), 'plant-store')
    must('git', ['clone', '--quiet', checkout, clone])
    const file = join(clone, 'deploy/Containerfile')
    const flags = ['--network', 'host', '--format', 'docker', '--file', file]
    podman.run('build', ...flags, '--tag', 'plant-store', clone)
    const path = join(newFolder(), 'token')
    must('sh', ['-c', `umask 077; printf %s '${token}' > ${path}`])
    podman.run('secret', 'create', 'token', path)
    port = await findFreePort()
    url = `http://127.0.0.1:${port}`
  })

  const isReady = async () => (await fetch(`${url}/readyz`).catch(() => undefined))?.status === 200

  /** Starts a container as the Containerfile says. */
  async function start(name: string, ...flags: string[]): Promise<void> {
    podman.run(
      ...['run', '--detach', '--name', name, ...limits, '--read-only', '--cap-drop', 'all'],
      ...['--security-opt', 'no-new-privileges', '--volume', 'plants:/data'],
      ...['--secret', 'token,uid=65532,mode=0400'],
      ...['--env', 'PLANT_STORE_TOKEN_FILE=/run/secrets/token', ...flags, 'plant-store'],
    )
    await waitUntil(isReady, `${name} is ready`)
  }

  async function exportAll(): Promise<string> {
    const answer = await fetch(`${url}/plants.ndjson`, {
      headers: { Authorization: `Bearer ${token}` },
    })
    assert.equal(answer.status, 200)
    return answer.text()
  }

  it('has the licences of everything inside', () => {
    const copy = join(newFolder(), 'licenses')
    const file = '/usr/share/doc/plant-store/THIRD-PARTY-LICENSES.txt'
    podman.run('create', '--name', 'licenses', ...limits, 'plant-store')
    podman.run('cp', `licenses:${file}`, copy)
    podman.run('rm', 'licenses')
    assert.match(readFileSync(copy, 'utf8'), /^Node\.js is licensed/m)
  })

  it('has a health check, a user that is not root, and no shell', () => {
    const inspect = (field: string) =>
      podman.run('image', 'inspect', '--format', `{{.${field}}}`, 'plant-store').trim()
    assert.equal(inspect('Config.Healthcheck.Test'), '[CMD /usr/local/bin/plant-store ready]')
    assert.equal(inspect('Config.User'), '65532:65532')
    console.log(`the image has ${Math.round(Number(inspect('Size')) / 1e6)} MB`)
    assert.notEqual(
      podman.try('run', '--rm', ...limits, '--entrypoint', '/bin/sh', 'plant-store'),
      0,
    )
    assert.equal(podman.try('run', '--rm', ...limits, 'plant-store', '--version'), 0)
  })

  it('stops within 10 s under load, and the volume keeps every acknowledged plant', async () => {
    await start('first', '--publish', `127.0.0.1:${port}:3000`)
    assert.equal(podman.try(...health, 'first'), 0)
    const writer = startWriter({ url, token, firstId: 1 })
    await writer.more(500)
    const stoppedAt = performance.now()
    podman.run('stop', 'first')
    const seconds = (performance.now() - stoppedAt) / 1000
    await writer.stop()
    const [{ State: state }] = JSON.parse(podman.run('inspect', 'first'))
    // podman kills after 10 s: the exit code would be 137.
    assert.equal(state.ExitCode, 0)
    assert.doesNotMatch(podman.run('logs', 'first'), new RegExp(`plst_|${token}`))
    podman.run('rm', 'first')
    await start('second', '--publish', `127.0.0.1:${port}:3000`)
    writer.requireStored(await exportAll(), `stopped in ${seconds.toFixed(1)} s`)
    podman.run('rm', '--force', 'second')
  })

  it('is unhealthy while its store is away, and healthy again after that', async () => {
    const cluster = await newCluster()
    const server = await startServer(cluster)
    releaseAfterTest(server.stop)
    const database = ['--env', `DATABASE_URL=${server.toUrl('postgres')}`]
    await start('third', '--network', 'host', '--env', `PORT=${port}`, ...database)
    assert.equal(podman.try(...health, 'third'), 0)
    server.process.kill('SIGQUIT')
    await waitUntil(async () => !(await isReady()), 'the service has noticed')
    assert.equal(podman.try(...health, 'third'), 1)
    const again = await startServer(cluster, {}, { port: server.port })
    releaseAfterTest(again.stop)
    await waitUntil(isReady, 'the service is ready again')
    assert.equal(podman.try(...health, 'third'), 0)
    podman.run('rm', '--force', 'third')
  })

  it('runs with PostgreSQL, Caddy and Prometheus by the steps of compose.yaml', {
    skip: noCompose,
  }, async () => {
    importServers(podman.importImage)
    const ports = { http: await findFreePort(), https: await findFreePort() }
    const { token, exec, giveToken } = startStack(podman, ports)
    // The certificate of Caddy is its own.
    const site = { port: ports.https, certificate: undefined }
    const headers = { Authorization: `Bearer ${token}` }
    const call = (path: string, body?: string) => callSite({ ...site, path, headers, body })
    const isUp = async () => (await call('/readyz').catch(() => undefined))?.status === 200
    await waitUntil(isUp, 'Caddy reaches the service')
    assert.deepEqual(await call('/plants', '{"id":1,"name":"Fern"}'), {
      status: 200,
      location: 'https://plants.example/plants/1',
      body: '{"name":"Fern"}',
    })
    assert.equal((await call('/metrics')).status, 404)
    const create = ['token', 'create', '--name', 'prometheus', '--scope', 'metrics:read']
    giveToken(exec('plant-store', '/usr/local/bin/plant-store', ...create))
    const query = ['promtool', 'query', 'instant', 'http://127.0.0.1:9090', 'plant_store_store_up']
    await waitUntil(() => / => 1 @/.test(exec('prometheus', ...query)), 'Prometheus has scraped')
  })
})
