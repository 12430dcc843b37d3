import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { parseYaml } from '@redocly/openapi-core'
import { issueCertificate } from '../support/certificates.ts'
import { killAfterTest } from '../support/child.ts'
import { newFolder } from '../support/folder.ts'
import { findFreePort } from '../support/postgres.ts'
import { releaseAfterTest } from '../support/release.ts'
import { startService } from '../support/service.ts'
import { waitUntil } from '../support/wait.ts'
import { findMissing, must } from './needs.ts'
import { callSite, openSite } from './site.ts'

const folder = new URL('../../deploy/', import.meta.url)
const read = (name: string) => readFileSync(new URL(name, folder), 'utf8')

for (const name of ['plant-store', 'plant-store-backup', 'plant-store-check']) {
  it(`the unit ${name} for systemd is valid and exposes little`, {
    skip: findMissing('systemd-analyze'),
  }, () => {
    const unit = join(newFolder(), `${name}.service`)
    const text = read(`${name}.service`)
    writeFileSync(unit, text.replaceAll('/usr/local/bin/plant-store', '/bin/true'))
    const verified = spawnSync('systemd-analyze', ['verify', unit], { encoding: 'utf8' })
    assert.equal(verified.stderr + verified.stdout, '')
    const { stdout } = spawnSync('systemd-analyze', ['security', '--offline=true', unit], {
      encoding: 'utf8',
    })
    const [, level] = /exposure level for .*: (\d+\.\d+)/.exec(stdout) ?? []
    assert.ok(Number(level) <= 2, `exposure level ${level}`)
  })
}

it('.dockerignore leaves out what may hold secrets', () => {
  const lines = readFileSync(new URL('../.dockerignore', folder), 'utf8').split('\n')
  for (const name of ['deploy/secrets', '**/.env', '**/.env.*', '**/*.env', 'data']) {
    assert.ok(lines.includes(name), name)
  }
})

describe('compose.yaml', () => {
  interface Service {
    readonly environment?: Record<string, string>
    readonly ports?: string[]
    readonly volumes?: string[]
    readonly secrets?: string[]
    readonly [other: string]: unknown
  }
  const { services, secrets, volumes } = parseYaml(read('compose.yaml')) as {
    services: Record<string, Service>
    secrets: Record<string, { file: string }>
    volumes: Record<string, unknown>
  }

  for (const [name, service] of Object.entries(services)) {
    it(`confines ${name}, checks its health and restarts it`, () => {
      const { read_only, cap_drop, security_opt, restart, healthcheck, privileged } = service
      assert.deepEqual(
        { read_only, cap_drop, security_opt, restart, privileged },
        {
          read_only: true,
          cap_drop: ['ALL'],
          security_opt: ['no-new-privileges:true'],
          restart: 'unless-stopped',
          privileged: undefined,
        },
      )
      // The image of the service has its own.
      assert.equal(healthcheck !== undefined, name !== 'plant-store')
    })

    it(`lets ${name} read secrets and files that there are`, () => {
      for (const secret of service.secrets ?? []) assert.ok(secrets[secret], secret)
      for (const volume of service.volumes ?? []) {
        const [source = ''] = volume.split(':')
        if (source.startsWith('./')) read(source)
        else assert.ok(source in volumes, source)
      }
      const plain = Object.keys(service.environment ?? {}).filter((variable) =>
        /(PASSWORD|TOKEN)$/.test(variable),
      )
      assert.deepEqual(plain, [])
    })
  }

  it('opens no ports but those of Caddy', () => {
    const open = Object.keys(services).filter((name) => services[name]?.ports !== undefined)
    assert.deepEqual(open, ['caddy'])
  })
})

it('the settings of Prometheus are valid, and so are the alert rules, at least ten', {
  skip: findMissing('promtool'),
}, () => {
  const here = newFolder()
  writeFileSync(join(here, 'alerts.yml'), read('alerts.yml'))
  writeFileSync(join(here, 'token'), '')
  const settings = read('prometheus.yml').replace('/run/secrets/metrics-token', 'token')
  writeFileSync(join(here, 'prometheus.yml'), settings)
  const stdout = must('promtool', ['check', 'config', join(here, 'prometheus.yml')])
  assert.ok(Number(/(\d+) rules found/.exec(stdout)?.[1]) >= 10, stdout)
})

/** A proxy: its configuration on other ports, and how it is started in the foreground. */
interface Proxy {
  readonly program: string
  readonly skip: string | false
  /** Whether it limits the connections of an address. */
  readonly isLimiting?: true
  toConfig(ports: { readonly tls: number; readonly service: number }, pem: string): string
  toArguments(config: string): string[]
}

const proxies: Proxy[] = [
  {
    program: 'nginx',
    skip: findMissing('nginx'),
    isLimiting: true,
    toConfig: ({ tls, service }, pem) => `daemon off;
pid ${pem}.pid;
error_log stderr;
events {}
http {
  access_log off;
  ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${pem}-${name};`).join('\n  ')}
  ${read('nginx.conf')
    .replace('listen 443', `listen 127.0.0.1:${tls}`)
    .replace('127.0.0.1:3000', `127.0.0.1:${service}`)
    .replaceAll(/\/etc\/ssl\/plants\.example\.(pem|key)/g, pem)}
}`,
    toArguments: (config) => ['-c', config],
  },
  {
    program: 'haproxy',
    skip: findMissing('haproxy'),
    isLimiting: true,
    toConfig: ({ tls, service }, pem) =>
      read('haproxy.cfg')
        .replace('bind :443', `bind 127.0.0.1:${tls}`)
        .replace('127.0.0.1:3000', `127.0.0.1:${service}`)
        .replace('/etc/ssl/plants.example.pem', pem),
    toArguments: (config) => ['-db', '-f', config],
  },
  {
    program: 'caddy',
    skip: findMissing('caddy'),
    toConfig: ({ tls, service }, pem) =>
      `{\n\tadmin off\n\tauto_https disable_redirects\n\thttp_port ${tls + 1}\n}\n${read(
        'Caddyfile',
      )
        .replace(
          'plants.example {',
          `https://plants.example:${tls} {\n\tbind 127.0.0.1\n\ttls ${pem} ${pem}`,
        )
        .replace('127.0.0.1:3000', `127.0.0.1:${service}`)}`,
    toArguments: (config) => ['run', '--adapter', 'caddyfile', '--config', config],
  },
]

for (const proxy of proxies) {
  describe(`${proxy.program} in front of the service`, { skip: proxy.skip }, () => {
    it('passes requests on with TLS, and keeps the metrics inside', async () => {
      const { service, call } = await startBehind(proxy)
      const created = await call('/plants', '{"id":1,"name":"Fern"}')
      assert.deepEqual(created, {
        status: 200,
        location: 'https://plants.example/plants/1',
        body: '{"name":"Fern"}',
      })
      const file = Array.from({ length: 5_000 }, (_, id) => `{"id":${id + 2},"name":"x"}\n`)
      const imported = await call('/plants.ndjson', file.join(''))
      assert.equal(JSON.parse(imported.body).stored, 5_000, imported.body)
      const exported = await call('/plants.csv')
      assert.equal(exported.body.split('\n').length, 5_003)
      for (const path of ['/metrics', '/%6detrics', '/metric%73']) {
        assert.ok([403, 404].includes((await call(path)).status), path)
      }
      const lines = service.log.map((line) => JSON.parse(line))
      assert.ok(lines.some(({ msg, client }) => msg === 'answered' && client === '127.0.0.1'))
    })

    if (!proxy.isLimiting) return
    it('allows a hundred connections from one address, and others from another', async () => {
      const { ports, certificate, call } = await startBehind(proxy)
      /** Follows the changes from another address of this machine. */
      const follow = async () => {
        const headers = { Accept: 'text/event-stream' }
        const other = { port: ports.tls, certificate, from: '127.0.0.2' }
        const { sent, answer } = openSite({ ...other, path: '/events', headers })
        releaseAfterTest(() => sent.destroy())
        return answer.then(({ statusCode }) => String(statusCode)).catch(() => 'refused')
      }
      for (let opened = 0; opened < 100; opened++) assert.equal(await follow(), '200')
      assert.match(await follow(), /^(429|refused)$/)
      const created = await call('/plants', '{"id":1,"name":"Fern"}')
      assert.equal(created.status, 200)
    })
  })
}

/** Starts the service, and a proxy in front of it. */
async function startBehind({ program, toConfig, toArguments }: Proxy) {
  const service = await startService('sqlite::memory:', {
    env: { PUBLIC_URL: 'https://plants.example', TRUST_PROXY: '1', LOG_LEVEL: 'debug' },
  })
  const here = newFolder()
  const tls = await findFreePort()
  const { certificate, key } = issueCertificate({
    subject: 'plants.example',
    names: ['plants.example'],
  })
  const pem = join(here, 'plants.pem')
  writeFileSync(pem, certificate + key)
  const config = join(here, 'config')
  const ports = { tls, service: Number(new URL(service.url).port) }
  writeFileSync(config, toConfig(ports, pem))
  const child = spawn(program, toArguments(config), {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, HOME: here, XDG_DATA_HOME: here, XDG_CONFIG_HOME: here },
  })
  killAfterTest(child)
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (more: string) => {
    said += more
  })
  const call = (path: string, body?: string) => {
    const type = path.endsWith('.ndjson') && { 'Content-Type': 'application/x-ndjson' }
    return callSite({ port: tls, certificate, path, body, headers: { ...type } })
  }
  const isUp = async () => {
    assert.equal(child.exitCode, null, said)
    return (await call('/readyz').catch(() => undefined))?.status === 200
  }
  await waitUntil(isUp, `${program} is up`)
  return { service, ports, certificate, call }
}
