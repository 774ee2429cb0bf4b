// TLS to a server, and what is wrong when it fails.
import { readFileSync } from 'node:fs'
import type { ConnectionOptions } from 'node:tls'

/** `RDB_TLS` and `KV_TLS`. */
type TlsMode = 'off' | 'require' | 'verify'

/**
 * What a connection to a server needs for TLS; null for none. The caller gives the host, against which the name in the certificate is checked.
 * @param caFile certificates of the trusted authorities; undefined: those that Node trusts
 * @throws when the file cannot be read
 */
export function clientTls(mode: TlsMode, caFile: string | undefined): ConnectionOptions | null {
  if (mode === 'off') return null
  if (mode === 'require') return { rejectUnauthorized: false }
  // Said, because NODE_TLS_REJECT_UNAUTHORIZED=0 would change the default.
  return { rejectUnauthorized: true, ...(caFile === undefined ? {} : { ca: readFileSync(caFile) }) }
}

/**
 * What is wrong with the server's TLS and how to fix it; undefined when the error is about something else.
 * @param prefix of the variables, `RDB` or `KV`
 */
export function tlsAdvice(code: string | undefined, prefix: 'RDB' | 'KV'): string | undefined {
  switch (code) {
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return `its certificate is for another host: correct ${prefix}_HOST, or the certificate`
    case 'CERT_HAS_EXPIRED':
    case 'CERT_NOT_YET_VALID':
      return 'its certificate is not valid at this time: renew it, or correct the clock'
    case 'SELF_SIGNED_CERT_IN_CHAIN':
    case 'DEPTH_ZERO_SELF_SIGNED_CERT':
    case 'UNABLE_TO_GET_ISSUER_CERT':
    case 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY':
    case 'UNABLE_TO_VERIFY_LEAF_SIGNATURE':
    case 'CERT_SIGNATURE_FAILURE':
    case 'CERT_UNTRUSTED':
    case 'INVALID_CA':
      return `its certificate is not by an authority that ${prefix}_CA_FILE names: correct that, or the certificate`
    default:
      if (code === undefined || !/^(?:EPROTO$|ERR_SSL_|ERR_TLS_)/.test(code)) return undefined
      return `it does not speak TLS as expected (${code}): correct ${prefix}_PORT, or set ${prefix}_TLS=off where the network is trusted`
  }
}
