import { isIPv6, SocketAddress } from 'node:net'

/** Groups of an IPv6 address that belong to its network: whoever has one address of it has them all (RFC 6177). */
const NETWORK_GROUPS = 4
const ALL_GROUPS = 8

/** An IPv6 address in the one spelling that RFC 5952 recommends; anything else as it is. */
export function canonicalAddress(ip: string): string {
  return isIPv6(ip) ? new SocketAddress({ address: ip.replace(/%.*/, ''), family: 'ipv6' }).address : ip
}

/** What counts as one visitor: an IPv4 address, or the /64 network of an IPv6 address, however it is spelled. */
export function networkOf(ip: string): string {
  const address = canonicalAddress(ip)
  if (!address.includes(':') || address.includes('.')) return address
  const [before = [], after] = address.split('::').map((part) => part.split(':').filter((group) => group !== ''))
  const zeros = after === undefined ? 0 : ALL_GROUPS - before.length - after.length
  const groups = [...before, ...new Array<string>(zeros).fill('0'), ...(after ?? [])]
  return groups.slice(0, NETWORK_GROUPS).join(':')
}
