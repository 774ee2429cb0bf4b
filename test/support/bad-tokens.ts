// Tokens that nobody may take, for whoever checks them: by a request, or at the tool.
import { createHash, createHmac, generateKeyPairSync, sign } from 'node:crypto'
import { SECRET } from './tool-runtime.ts'

export const HEADER = { alg: 'HS256', typ: 'JWT' }
export const nowSec = Math.floor(Date.now() / 1000)
export const CLAIMS = { sub: 'user-1', iat: nowSec, exp: nowSec + 86_400 }

const encode = (value: unknown): string =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
const hmac = (input: string, secret: string | Buffer = SECRET, hash = 'sha256'): string =>
  createHmac(hash, secret).update(input).digest('base64url')

/** A token that is signed as its header says, whatever stands in it. Text is taken for JSON already. */
export function token(header: unknown, claims: unknown, secret: string | Buffer = SECRET, hash = 'sha256'): string {
  const input = `${encode(header)}.${encode(claims)}`
  return `${input}.${hmac(input, secret, hash)}`
}

export const GOOD = token(HEADER, CLAIMS)
export const [HEAD, BODY, SIGNATURE] = GOOD.split('.') as [string, string, string]
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const rsaPem = rsa.publicKey.export({ type: 'spki', format: 'pem' }).toString()

function signedBy(alg: string, key: Parameters<typeof sign>[2], hash: string | null = 'sha256'): string {
  const input = `${encode({ alg, typ: 'JWT' })}.${encode(CLAIMS)}`
  return `${input}.${sign(hash, Buffer.from(input), key).toString('base64url')}`
}

/** The last character of a signature has two bits that nobody reads. */
function looseBits(): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  const last = alphabet.indexOf(SIGNATURE.at(-1)!)
  return SIGNATURE.slice(0, -1) + alphabet[last ^ 1]
}

/** By what is wrong with them. */
export const BAD: Record<string, string[]> = {
  'no signature': ['none', 'None', 'NONE', 'nOnE', 'none ', '', 'null'].flatMap((alg) => {
    const input = `${encode({ alg, typ: 'JWT' })}.${BODY}`
    return [`${input}.`, `${input}`, `${input}.${SIGNATURE}`, `${input}.${hmac(input)}`, `${input}.${encode('none')}`]
  }),
  'another algorithm': [
    ...'HS384|HS512|HS1|hs256|Hs256|HS256 | HS256|HS-256|HMAC|dir|A128KW|PBES2-HS256+A128KW'
      .split('|')
      .map((alg) => token({ ...HEADER, alg }, CLAIMS)),
    token({ ...HEADER, alg: 'HS384' }, CLAIMS, SECRET, 'sha384'),
    token({ ...HEADER, alg: 'HS512' }, CLAIMS, SECRET, 'sha512'),
    ...[null, 256, true, ['HS256'], { a: 'HS256' }].map((alg) => token({ alg, typ: 'JWT' }, CLAIMS)),
    token({ typ: 'JWT' }, CLAIMS),
    token('{"alg":"HS256","alg":"none"}', CLAIMS),
  ],
  'a key of another kind': [
    signedBy('RS256', rsa.privateKey),
    signedBy('PS256', { key: rsa.privateKey, padding: 6, saltLength: 32 } as never),
    signedBy('ES256', { key: ec.privateKey, dsaEncoding: 'ieee-p1363' } as never),
    signedBy('EdDSA', generateKeyPairSync('ed25519').privateKey, null),
    signedBy('HS256', rsa.privateKey),
    ...['RS256', 'ES256', 'PS256', 'EdDSA', 'HS256'].flatMap((alg) => [
      token({ alg, typ: 'JWT' }, CLAIMS, rsaPem),
      ...(alg === 'HS256' ? [] : [token({ alg, typ: 'JWT' }, CLAIMS)]),
    ]),
  ],
  'a wrong secret': [
    ...['', 'secret', `${SECRET} `, SECRET.slice(1), SECRET.toUpperCase(), '\0'],
    ...[Buffer.alloc(32), Buffer.alloc(64), createHash('sha256').update(SECRET).digest()],
  ].map((secret) => token(HEADER, CLAIMS, secret)),
  'a key that the token brings': [
    ...[{ kid: '../../dev/null' }, { kid: "' OR 1=1 --" }, { kid: 0 }].map((more) =>
      token({ ...HEADER, ...more }, CLAIMS, ''),
    ),
    ...[{ jku: 'http://127.0.0.1:1/keys' }, { x5u: 'http://127.0.0.1:1/' }, { x5c: ['MII'] }].map((more) =>
      token({ ...HEADER, ...more }, CLAIMS, 'x'),
    ),
    token({ ...HEADER, jwk: { kty: 'oct', k: encode('x') } }, CLAIMS, 'x'),
  ],
  'critical extensions': [
    ...[['exp'], ['b64'], ['x'], [], ['alg'], [''], [1], 'exp', {}, null, true].map((crit) =>
      token({ ...HEADER, crit }, CLAIMS),
    ),
    token({ ...HEADER, crit: ['x'], x: 1 }, CLAIMS),
    token({ ...HEADER, crit: ['b64', 'b64'], b64: true }, CLAIMS),
  ],
  'a payload that is not encoded': [
    token({ ...HEADER, b64: false, crit: ['b64'] }, CLAIMS),
    (() => {
      const input = `${encode({ ...HEADER, b64: false, crit: ['b64'] })}.{}`
      return `${input}.${hmac(input)}`
    })(),
  ],
  'a time that is over, not yet come or no time': [
    ...[0, 1, -1, nowSec - 1, nowSec - 10_000, 1.5, -1e300].map((exp) => token(HEADER, { ...CLAIMS, exp })),
    ...['', '9999999999', `${nowSec + 86_400}`, null, true, [nowSec + 86_400], {}, 'never'].map((exp) =>
      token(HEADER, { ...CLAIMS, exp }),
    ),
    token(HEADER, { sub: 'user-1' }),
    token(HEADER, { sub: 'user-1', iat: nowSec }),
    ...[nowSec + 86_400, '0', null, {}, 'x'].map((nbf) => token(HEADER, { ...CLAIMS, nbf })),
    ...['x', '0', {}].map((iat) => token(HEADER, { ...CLAIMS, iat })),
    token(HEADER, `{"sub":"user-1","exp":1e400}x`),
  ],
  'no subject, or none that is a name': [
    ...[undefined, null, '', 0, 1, true, ['user-1'], { a: 1 }].map((sub) => token(HEADER, { ...CLAIMS, sub })),
  ],
  'claims that are no object': [
    ...`[]|"user-1"|1|null|true| |{|{}}|{'sub':'user-1'}|[{"sub":"user-1"}]|\ufeff{}|\0`
      .split('|')
      .map((claims) => token(HEADER, claims)),
  ],
  'a header that is no object': [
    ...['[]', '"HS256"', '1', 'null', 'true', '{', '{"alg":"HS256"}x', '\0', '{alg:"HS256"}'].map((header) =>
      token(header, CLAIMS),
    ),
  ],
  'a signature that was touched': [
    `${HEAD}.${BODY}.${looseBits()}`,
    `${HEAD}.${BODY}.${SIGNATURE.slice(0, -1)}`,
    `${HEAD}.${BODY}.${SIGNATURE.slice(1)}`,
    `${HEAD}.${BODY}.${SIGNATURE}A`,
    `${HEAD}.${BODY}.${SIGNATURE}${SIGNATURE}`,
    `${HEAD}.${BODY}.${[...SIGNATURE].reverse().join('')}`,
    `${HEAD}.${BODY}.${Buffer.alloc(32).toString('base64url')}`,
    `${HEAD}.${BODY}.${hmac(`${HEAD}.${BODY}`, SECRET, 'sha1')}`,
    `${HEAD}.${encode({ ...CLAIMS, sub: 'root' })}.${SIGNATURE}`,
    `${encode({ typ: 'JWT', alg: 'HS256' })}.${BODY}.${SIGNATURE}`,
  ],
  'padding, and letters that are none of base64url': [
    `${HEAD}=.${BODY}.${SIGNATURE}`,
    `${HEAD}.${BODY}=.${SIGNATURE}`,
    `${HEAD}.${BODY}.${SIGNATURE}=`,
    `${HEAD}.${BODY}.${SIGNATURE}==`,
    `${HEAD}.${BODY}.${SIGNATURE}%3D`,
    ...['+', '/', '=', '!', '*', '~', '%00', '"', '\\', ','].flatMap((letter) => [
      `${letter}${GOOD}`,
      `${HEAD}${letter}.${BODY}.${SIGNATURE}`,
      `${HEAD}.${letter}${BODY}.${SIGNATURE}`,
      `${GOOD}${letter}`,
    ]),
  ],
  'another number of parts': [
    ...['', '.', '..', '...', '....', HEAD, `${HEAD}.${BODY}`, `${HEAD}.${BODY}.`, `.${BODY}.${SIGNATURE}`],
    ...[`${HEAD}..${SIGNATURE}`, `${GOOD}.`, `.${GOOD}`, `${GOOD}.${SIGNATURE}`, `${GOOD}.${GOOD}`],
    ...[`${HEAD}.${HEAD}.${BODY}.${SIGNATURE}.x`, GOOD.replaceAll('.', '..')],
    JSON.stringify({ protected: HEAD, payload: BODY, signature: SIGNATURE }),
    JSON.stringify({ payload: BODY, signatures: [{ protected: HEAD, signature: SIGNATURE }] }),
  ],
  'beyond all measure': [
    token(HEADER, { ...CLAIMS, more: 'x'.repeat(8_000) }),
    `${GOOD}${'A'.repeat(8_192)}`,
    '.'.repeat(8_000),
    'A'.repeat(12_000),
    token({ ...HEADER, deep: JSON.parse('['.repeat(1_000) + ']'.repeat(1_000)) }, CLAIMS, 'x'),
  ],
  'beyond ASCII': [
    ...['é', '€', '𝄞', '\u202e', '\u0000', '\u007f'].flatMap((letter) => [
      `${letter}${GOOD}`,
      `${HEAD}.${letter}.${SIGNATURE}`,
    ]),
    GOOD.replaceAll('.', '。'),
    GOOD.replaceAll('.', '\u2024'),
  ],
}
