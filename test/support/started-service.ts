import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type Heddle, type StartOptions, startHeddle } from './heddle.ts'
import { SHIPPED } from './shipped-domains.ts'

export const fixture = (name: string): string => fileURLToPath(new URL(`../fixtures/started/${name}`, import.meta.url))

/** The domains of one fixture and the shipped ones, or `beside` instead of those. */
export function startWith(
  t: TestContext,
  name: string,
  { beside = SHIPPED, ...options }: Omit<StartOptions, 'domains'> & { beside?: string } = {},
): Promise<Heddle> {
  return startHeddle(t, { lanes: 1, ...options, domains: [fixture(name), beside] })
}

/** Posts JSON. @returns the parsed body */
export async function post(heddle: Heddle, path: string, body: object = {}, headers: Record<string, string> = {}) {
  return (await heddle.post(path, body, headers)).body
}
