// Addresses of clients, in one spelling.
import { isIPv6, SocketAddress } from 'node:net'

/** Groups of an IPv6 address that belong to its network: whoever has one address of it has them all (RFC 6177). */
const NETWORK_GROUPS = 4
const ALL_GROUPS = 8

/** `::ffff:192.0.2.1`, as it is written, as a program may write it, and in full. */
const MAPPED = /^(?:::|(?:0{1,4}:){5})ffff:(?:(\d{1,3}(?:\.\d{1,3}){3})|([0-9a-f]{1,4}):([0-9a-f]{1,4}))$/i
/** An address may come with its port. */
const WITH_PORT = /^(?:\[([^\]]*)\](?::\d{1,5})?|(\d{1,3}(?:\.\d{1,3}){3}):\d{1,5})$/

/** An IPv6 address in the one spelling that RFC 5952 recommends; anything else as it is. */
function canonicalAddress(ip: string): string {
  return isIPv6(ip) ? new SocketAddress({ address: ip.replace(/%.*/, ''), family: 'ipv6' }).address : ip
}

/** Without brackets, port and zone, and of one spelling; an IPv4 address that an IPv6 socket shows as IPv6 is one again. */
export function plainAddress(text: string): string {
  const withPort = WITH_PORT.exec(text)
  const address = withPort?.[1] ?? withPort?.[2] ?? text
  const mapped = MAPPED.exec(address)
  if (mapped === null) return canonicalAddress(address)
  if (mapped[1] !== undefined) return mapped[1]
  const [high, low] = [Number.parseInt(mapped[2]!, 16), Number.parseInt(mapped[3]!, 16)]
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.')
}

/** The address that a socket has as 4 or 16 bytes, in one spelling. Empty for none. */
export function addressOfBytes(bytes: Uint8Array): string {
  if (bytes.length === 4) return `${bytes[0]}.${bytes[1]}.${bytes[2]}.${bytes[3]}`
  const groups: string[] = []
  for (let at = 0; at + 1 < bytes.length; at += 2) groups.push(((bytes[at]! << 8) | bytes[at + 1]!).toString(16))
  return plainAddress(groups.join(':'))
}

/** What counts as one visitor: an IPv4 address, or the /64 network of an IPv6 address, however it is spelled. */
export function networkOf(ip: string): string {
  const address = plainAddress(ip)
  if (!address.includes(':') || address.includes('.')) return address
  const [before = [], after] = address.split('::').map((part) => part.split(':').filter((group) => group !== ''))
  const zeros = after === undefined ? 0 : ALL_GROUPS - before.length - after.length
  const groups = [...before, ...new Array<string>(zeros).fill('0'), ...(after ?? [])]
  return groups.slice(0, NETWORK_GROUPS).join(':')
}
