import { GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3'

export default (get: (name: string) => string) => {
  const credentials = { accessKeyId: 'id', secretAccessKey: 'secret' }
  const s3 = new S3Client({ endpoint: get('TRIAL_HTTP'), region: 'eu-central-1', forcePathStyle: true, credentials })
  return async () => {
    await s3.send(new PutObjectCommand({ Bucket: 'looms', Key: 'one', Body: 'woven' }))
    return (await s3.send(new GetObjectCommand({ Bucket: 'looms', Key: 'one' }))).Body?.transformToString()
  }
}
