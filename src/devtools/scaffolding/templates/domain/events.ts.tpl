import { z } from 'zod'
import type { EventContracts, PayloadsOf } from 'heddle'

const contracts = {
  '{{event}}': z.object({ id: z.string(), name: z.string() }),
} satisfies EventContracts

export default contracts

export type {{Added}} = z.infer<(typeof contracts)['{{event}}']>

declare module 'heddle' {
  interface Events extends PayloadsOf<typeof contracts> {}
}
