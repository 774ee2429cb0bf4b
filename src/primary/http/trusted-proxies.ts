import { BlockList, isIP } from 'node:net'
import { withoutBlanks } from '../../core/http/header-text.ts'
import { plainAddress } from '../../core/http/network.ts'

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
    while (hops.length > 0 && this.isTrusted(client)) {
      const next = plainAddress(withoutBlanks(hops.pop()!))
      // What no proxy writes is not believed: the last one that is known answers for it.
      if (isIP(next) === 0) break
      client = next
    }
    return client
  }

  /** @param peer address of a connection, or of a hop */
  isTrusted(peer: string): boolean {
    const address = plainAddress(peer)
    return isIP(address) !== 0 && this.#networks.check(address, familyOf(address))
  }
}

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIP(address) === 6 ? 'ipv6' : 'ipv4')
