import { Redis } from 'ioredis'

export default (get: (name: string) => string) => {
  const redis = new Redis(get('TRIAL_REDIS'))
  return async () => {
    await redis.set('loom', 'warp')
    return redis.get('loom')
  }
}
