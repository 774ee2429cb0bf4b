import { fileURLToPath } from 'node:url'
import type { RequestDetail, RequestSummary } from '#heddle'
import type { Heddle } from '../../support/heddle.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

export const DOMAINS = [SHIPPED, fileURLToPath(new URL('./fixtures', import.meta.url))]

export interface Part {
  type: string
  kind?: string
  name?: string
  attempt?: number
  error?: { message: string; stack: string }
  calls?: { tool: string; method: string; parent: number; ms: number | null; statement?: string; message?: string }[]
  line?: string
  isGivenUp?: boolean
}

export const list = async (service: Heddle, query: string): Promise<RequestSummary[]> =>
  (await service.json(`/system/requests?${query}`)).body as RequestSummary[]
export const one = async (service: Heddle, id: string): Promise<RequestDetail> =>
  (await service.json(`/system/requests/${id}`)).body as RequestDetail
export const partsOf = ({ parts }: RequestDetail): Part[] => parts as unknown as Part[]

/** Waits until what was asked for is there: the history is written a moment later. */
export async function kept<T>(ask: () => Promise<T>, isThere: (answer: T) => boolean): Promise<T> {
  let answer!: T
  await until(async () => {
    answer = await ask()
    return isThere(answer)
  }, 'it is kept')
  return answer
}
