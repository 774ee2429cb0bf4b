import type { Settings } from './schema.ts'

/** Checks the settings of tokens against each other. A setting that has a fault of its own is missing. */
export function checkTokens(settings: Partial<Settings>, faults: string[]): void {
  const { authSecretKeys, authJwksUrl, authJwksIssuer, authAudience } = settings
  const kids = (authSecretKeys ?? '').split(',').map((entry) => entry.trim().split(':')[0]!)
  const twice = kids.find((kid, index) => kids.indexOf(kid) !== index)
  if (twice !== undefined)
    faults.push(`AUTH_SECRET_KEYS: expected each key id once, got ${JSON.stringify(twice)} twice`)
  // The provider signs for other services with the same keys: its tokens for them must not open this one.
  if (authJwksUrl === undefined) return
  if (authJwksIssuer === undefined) faults.push('AUTH_JWKS_ISSUER: expected the issuer of AUTH_JWKS_URL, got nothing')
  if (authAudience === undefined)
    faults.push('AUTH_AUDIENCE: expected a name because AUTH_JWKS_URL is set, got nothing')
}
