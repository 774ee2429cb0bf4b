import { redisServer } from '../support/servers/redis.ts'
import { runBusContract } from './bus-contract.ts'

runBusContract('streams of a key-value store', async (t) => {
  const redis = await redisServer(t)
  return redis === null ? null : { ...redis.env, EVENT_BUS_DRIVER: 'keyvalue_streams' }
})
