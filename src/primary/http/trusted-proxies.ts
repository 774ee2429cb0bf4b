import { BlockList, isIP } from 'node:net'
import { withoutBlanks } from '../../core/http/header-text.ts'

/** `::ffff:192.0.2.1`, as it is written, as a program may write it, and in full. */
const MAPPED = /^(?:::|(?:0{1,4}:){5})ffff:(?:(\d{1,3}(?:\.\d{1,3}){3})|([0-9a-f]{1,4}):([0-9a-f]{1,4}))$/i
/** An address may come with its port. */
const WITH_PORT = /^(?:\[([^\]]*)\](?::\d{1,5})?|(\d{1,3}(?:\.\d{1,3}){3}):\d{1,5})$/

/** The proxies whose `X-Forwarded-For` is believed. Every other client can write into it what it likes. */
export class TrustedProxies {
  readonly #networks = new BlockList()
  readonly isEmpty: boolean

  /** @param networks addresses, or networks such as `10.0.0.0/8` and `fd00::/8` */
  constructor(networks: readonly string[]) {
    this.isEmpty = networks.length === 0
    for (const network of networks) {
      const [address, prefix] = network.split('/') as [string, string | undefined]
      const family = familyOf(address)
      if (prefix === undefined) this.#networks.addAddress(plainAddress(address), familyOf(plainAddress(address)))
      else this.#networks.addSubnet(address, Number(prefix), family)
    }
  }

  /**
   * The address of the client: that of the connection, or behind trusted proxies the rightmost address that is no trusted proxy.
   * @param peer address of the connection
   * @param forwardedFor the list of `X-Forwarded-For`; each proxy has put the address of its own peer at its end
   */
  clientOf(peer: string, forwardedFor: string): string {
    let client = plainAddress(peer)
    const hops = forwardedFor === '' ? [] : forwardedFor.split(',')
    while (hops.length > 0 && this.#isTrusted(client)) {
      const next = plainAddress(withoutBlanks(hops.pop()!))
      // What no proxy writes is not believed: the last one that is known answers for it.
      if (isIP(next) === 0) break
      client = next
    }
    return client
  }

  #isTrusted(address: string): boolean {
    return isIP(address) !== 0 && this.#networks.check(address, familyOf(address))
  }
}

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIP(address) === 6 ? 'ipv6' : 'ipv4')

/** Without brackets, port and zone; an IPv4 address that an IPv6 socket shows as IPv6 is one again. */
function plainAddress(text: string): string {
  const withPort = WITH_PORT.exec(text)
  const address = withPort?.[1] ?? withPort?.[2] ?? text
  const mapped = MAPPED.exec(address)
  if (mapped === null) return address
  if (mapped[1] !== undefined) return mapped[1]
  const [high, low] = [Number.parseInt(mapped[2]!, 16), Number.parseInt(mapped[3]!, 16)]
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.')
}
