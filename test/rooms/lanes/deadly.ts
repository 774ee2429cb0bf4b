import type { BlackBox, LaneInfo } from '../../../src/contracts/registry.ts'
import { type Heddle, type StartOptions, startHeddle } from '../../support/heddle.ts'
import { shareService } from '../../support/shared-service.ts'
import { fixtureDomains, SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

const DOMAINS = [fixtureDomains('deadly'), SYSTEM_ROUTES]

type Owner = Parameters<typeof startHeddle>[0]

/** A runtime with a plugin that does harm and one that keeps the peace, and the routes of the system. */
export function startDeadly(t: Owner, options: StartOptions = {}): Promise<Heddle> {
  return startHeddle(t, { domains: DOMAINS, ...options, env: { LANE_STALL_MS: '1000', ...options.env } })
}

/** One for all tests of a `describe`. */
export function shareDeadly(options?: StartOptions): () => Heddle {
  return shareService((owner) => startDeadly(owner, options))
}

export async function lanesOf(heddle: Heddle): Promise<LaneInfo[]> {
  return (await heddle.json('/system/lanes')).body
}

/** All black boxes, newest first. */
export async function boxesOf(heddle: Heddle): Promise<BlackBox[]> {
  const boxes = (await lanesOf(heddle)).flatMap(({ deaths }) => deaths)
  return boxes.sort((a, b) => (a.at < b.at ? 1 : -1))
}

export const deathsIn = (heddle: Heddle) => heddle.logs.filter(({ msg }) => / died: /.test(msg))

/** Waits until every lane is ready, and the probation lane where it is needed. */
export function allUp(heddle: Heddle): Promise<unknown> {
  const isUp = ({ role, state }: LaneInfo): boolean =>
    role === 'quarantine' || state === 'ready' || (role === 'probation' && state === 'idle')
  return until(async () => (await lanesOf(heddle)).every(isUp), 'all lanes', 60_000)
}

export async function publish(heddle: Heddle, event: string, payload: object): Promise<string> {
  const { body } = await heddle.post('/publish', { event, payload })
  return body.id
}
