import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'

/** A certificate with its key, both as PEM. */
export interface Certificate {
  readonly subject: string
  readonly certificate: string
  readonly key: string
  readonly privateKey: KeyObject
}

export interface CertificateOptions {
  readonly subject: string
  /**
   * The authority that signs it. Without one, the certificate is an authority that signs itself.
   */
  readonly issuer?: Certificate
  /** The host names that it is valid for. */
  readonly names?: readonly string[]
  /** The IPv4 addresses that it is valid for. */
  readonly addresses?: readonly string[]
  /** When it expires; in a day, unless said otherwise. */
  readonly expiresAt?: number
}

const dayMs = 24 * 60 * 60 * 1000

/** Issues an X.509 certificate (RFC 5280) for a new P-256 key, without any other program. */
export function issueCertificate(options: CertificateOptions): Certificate {
  const { subject, issuer, names = [], addresses = [], expiresAt = Date.now() + dayMs } = options
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const hosts = [
    ...names.map((name) => der(0x82, Buffer.from(name))),
    ...addresses.map((address) => der(0x87, Buffer.from(address.split('.').map(Number)))),
  ]
  const extensions = [
    ...(issuer === undefined ? [toExtension(basicConstraints, sequence(boolean))] : []),
    ...(hosts.length > 0 ? [toExtension(subjectAltName, sequence(...hosts))] : []),
  ]
  const body = sequence(
    der(0xa0, integer(2)),
    integer(...randomBytes(8).with(0, 1)),
    ecdsaWithSha256,
    toName(issuer?.subject ?? subject),
    sequence(toTime(expiresAt - 2 * dayMs), toTime(expiresAt)),
    toName(subject),
    publicKey.export({ type: 'spki', format: 'der' }),
    ...(extensions.length > 0 ? [der(0xa3, sequence(...extensions))] : []),
  )
  const signature = sign('sha256', body, issuer?.privateKey ?? privateKey)
  const signed = sequence(body, ecdsaWithSha256, der(0x03, Buffer.of(0), signature))
  const lines = signed.toString('base64').match(/.{1,64}/g) ?? []
  return {
    subject,
    certificate: `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
    privateKey,
  }
}

/** One element of DER: its tag, its length, its content. */
function der(tag: number, ...contents: Buffer[]): Buffer {
  const content = Buffer.concat(contents)
  const { length } = content
  if (length < 0x80) return Buffer.concat([Buffer.of(tag, length), content])
  // DER takes the shortest form of a length; not every reader insists on it.
  if (length < 0x100) return Buffer.concat([Buffer.of(tag, 0x81, length), content])
  return Buffer.concat([Buffer.of(tag, 0x82, length >> 8, length & 0xff), content])
}

function sequence(...elements: Buffer[]): Buffer {
  return der(0x30, ...elements)
}

function integer(...bytes: number[]): Buffer {
  return der(0x02, Buffer.from(bytes))
}

function toName(name: string): Buffer {
  return sequence(der(0x31, sequence(commonName, der(0x0c, Buffer.from(name)))))
}

function toTime(at: number): Buffer {
  const digits = new Date(at).toISOString().replaceAll(/\D/g, '')
  return der(0x17, Buffer.from(`${digits.slice(2, 14)}Z`))
}

function toExtension(identifier: Buffer, value: Buffer): Buffer {
  return sequence(identifier, boolean, der(0x04, value))
}

const boolean = der(0x01, Buffer.of(0xff))
const basicConstraints = der(0x06, Buffer.from('551d13', 'hex'))
const subjectAltName = der(0x06, Buffer.from('551d11', 'hex'))
const commonName = der(0x06, Buffer.from('550403', 'hex'))
const ecdsaWithSha256 = sequence(der(0x06, Buffer.from('2a8648ce3d040302', 'hex')))
