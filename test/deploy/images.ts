import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { newFolder } from '../support/folder.ts'
import { must } from './needs.ts'

/**
 * Stand-ins for images that cannot be pulled everywhere, made from Debian's packages under the same
 * names. They have what the Containerfile and compose.yaml rely on.
 */
type Import = (name: string, folder: string, ...changes: string[]) => void

const distroless = ['libc6', 'libgcc-s1', 'libstdc++6', 'tzdata', 'ca-certificates']

/** Debian with the Node.js of this checkout and the npm of this machine, for the build. */
export function importNode(importImage: Import): void {
  const root = copyDebian('debian-12', [])
  cpSync(process.execPath, join(root, 'usr/local/bin/node'))
  const npm = dirname(dirname(must('readlink', ['-f', findNpm()]).trim()))
  cpSync(npm, join(root, 'usr/local/lib/node_modules/npm'), { recursive: true, dereference: true })
  for (const name of ['npm', 'npx']) {
    symlinkSync(`../lib/node_modules/npm/bin/${name}-cli.js`, join(root, 'usr/local/bin', name))
  }
  // How this machine reaches the registry of npm.
  cpSync('/etc/ssl/certs/ca-certificates.crt', join(root, 'etc/ssl/certs/ca-certificates.crt'))
  const settings = must('npm', ['config', 'get', 'registry']).trim()
  writeFileSync(
    join(root, 'root/.npmrc'),
    `registry=${settings}\ncafile=/etc/ssl/certs/ca-certificates.crt\n`,
  )
  importImage('docker.io/library/node:24-bookworm-slim', root, 'CMD ["node"]')
}

function findNpm(): string {
  const folders = (process.env.PATH ?? '').split(':').filter((path) => !/node_modules/.test(path))
  const found = folders.map((folder) => join(folder, 'npm')).find((path) => existsSync(path))
  if (found === undefined) throw new Error('npm is not installed')
  return found
}

/** The C and C++ libraries, certificates and time zones, and nothing that could be run. */
export function importDistroless(importImage: Import): void {
  const debian = makeDebian('debian-12', [])
  const root = join(newFolder('/var/tmp'), 'root')
  mkdirSync(root)
  const info = join(debian, 'var/lib/dpkg/info')
  const list = distroless.map((name) =>
    readFileSync(
      join(info, existsSync(join(info, `${name}.list`)) ? `${name}.list` : `${name}:amd64.list`),
      'utf8',
    ),
  )
  // Programs, and the links that Debian has in place of these two folders.
  const left = /^\/((usr\/)?s?bin\/.*|lib(64)?)$/
  const paths = list
    .join('')
    .split('\n')
    .filter((path) => path.length > 2 && !left.test(path))
    .map((path) => `.${path}`)
  const archive = join(root, '..', 'libraries.tar')
  must(
    'tar',
    ['--create', '--file', archive, '--no-recursion', '-C', debian, '--files-from=-'],
    `${paths.join('\n')}\n./etc/ssl/certs/ca-certificates.crt\n`,
  )
  must('tar', ['--extract', '--file', archive, '-C', root])
  writeFileSync(
    join(root, 'etc/passwd'),
    'root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n',
  )
  writeFileSync(join(root, 'etc/group'), 'root:x:0:\nnonroot:x:65532:\n')
  mkdirSync(join(root, 'tmp'), { mode: 0o777 })
  importImage('gcr.io/distroless/cc-debian12:nonroot', root, 'USER 65532')
}

/** A copy of such a system. */
export function copyDebian(name: string, packages: readonly string[]): string {
  const root = join(newFolder('/var/tmp'), 'root')
  must('cp', ['--archive', '--reflink=auto', makeDebian(name, packages), root])
  return root
}

/** As the image of PostgreSQL does: the database is made at the first start, by the user 999. */
const startPostgres = `#!/bin/sh -e
export PATH="$PATH:/usr/lib/postgresql/15/bin"
if [ ! -e "$PGDATA/PG_VERSION" ]; then
  initdb --username="$POSTGRES_USER" --pwfile="$POSTGRES_PASSWORD_FILE" --auth=scram-sha-256 --encoding=UTF8 --locale=C.UTF-8
  echo 'host all all all scram-sha-256' >> "$PGDATA/pg_hba.conf"
  pg_ctl start --wait --options='-c listen_addresses='
  PGPASSWORD=$(cat "$POSTGRES_PASSWORD_FILE") createdb --username="$POSTGRES_USER" "$POSTGRES_DB"
  pg_ctl stop --wait
fi
exec postgres -c listen_addresses='*'
`

/** PostgreSQL, Caddy and Prometheus, in the releases that Debian 12 has. */
export function importServers(importImage: Import): void {
  const root = copyDebian('debian-12-servers', ['postgresql-15', 'caddy', 'prometheus'])
  writeFileSync(join(root, 'start-postgres'), startPostgres, { mode: 0o755 })
  symlinkSync('/usr/lib/postgresql/15/bin/pg_isready', join(root, 'usr/local/bin/pg_isready'))
  must('chroot', [root, 'usermod', '--non-unique', '--uid', '999', 'postgres'])
  const owners = { 'var/lib/postgresql/data': '999', 'run/postgresql': '999', prometheus: '65534' }
  for (const [folder, owner] of Object.entries(owners)) {
    mkdirSync(join(root, folder), { recursive: true })
    must('chown', ['--recursive', owner, join(root, folder)])
  }
  for (const folder of ['data', 'config']) mkdirSync(join(root, folder))
  importImage(
    'docker.io/library/postgres:17-bookworm',
    root,
    'ENV PGDATA=/var/lib/postgresql/data',
    'VOLUME /var/lib/postgresql/data',
    'ENTRYPOINT ["/start-postgres"]',
  )
  importImage(
    'docker.io/library/caddy:2',
    root,
    'ENV XDG_DATA_HOME=/data',
    'ENV XDG_CONFIG_HOME=/config',
    'CMD ["caddy","run","--config","/etc/caddy/Caddyfile","--adapter","caddyfile"]',
  )
  importImage('docker.io/prom/prometheus:v3.5.0', root, 'USER 65534', 'ENTRYPOINT ["prometheus"]')
}

/** Systems are made once, which takes a minute, and kept. */
const cache = '/var/cache/plant-store-test'

/** A folder with a fresh Debian 12 that has these packages. Copy it: it is shared by all runs. */
export function makeDebian(name: string, packages: readonly string[]): string {
  const root = join(cache, name)
  if (existsSync(root)) return root
  mkdirSync(cache, { recursive: true })
  const draft = `${root}.part-${process.pid}`
  const include = `--include=${['ca-certificates', ...packages].join(',')}`
  try {
    must('debootstrap', ['--variant=minbase', include, 'bookworm', draft])
    renameSync(draft, root)
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
  return root
}
