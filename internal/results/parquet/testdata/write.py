# Writes the files of this directory, as pyarrow 26.0 and DuckDB 2.0 have them: python3 write.py .
import pyarrow as pa, pyarrow.parquet as pq, decimal, datetime, numpy as np, duckdb, sys
out=sys.argv[1]
D=decimal.Decimal
def types():
    return pa.table({
 'i8':pa.array([1,-2,None],pa.int8()),'u8':pa.array([1,200,None],pa.uint8()),'u32':pa.array([1,4000000000,None],pa.uint32()),
 'i32':pa.array([1,-2,None],pa.int32()),'i64':pa.array([1,2**60+1,None],pa.int64()),
 'f32':pa.array([0.1,2e30,None],pa.float32()),'f64':pa.array([0.1,2e300,None],pa.float64()),
 'b':pa.array([True,False,None]),'s':pa.array(['a','ü<x>',None]),'bin':pa.array([b'a',b'\xff\x00',None],pa.binary()),'fsb':pa.array([b'abcd',b'wxyz',None],pa.binary(4)),
 'd32':pa.array([D('1.23'),D('-45.60'),None],pa.decimal128(7,2)),'d128':pa.array([D('1.23'),D('-0.05'),None],pa.decimal128(30,2)),
 'date':pa.array([datetime.date(2024,1,2),datetime.date(1960,1,1),None]),
 'ts_ms':pa.array([1704067200123,0,None],pa.timestamp('ms')),'ts_us':pa.array([1704067200123456,0,None],pa.timestamp('us','UTC')),'ts_ns':pa.array([1704067200123456789,0,None],pa.timestamp('ns')),
 't32':pa.array([1000,2000,None],pa.time32('ms')),'t64':pa.array([1000,2000,None],pa.time64('us')),
 'lst':pa.array([[1,2],[],None],pa.list_(pa.int32())),'lst2':pa.array([[[1],[2,3]],[[]],None],pa.list_(pa.list_(pa.int32()))),
 'lsts':pa.array([[{'role':'user','content':'hi'},{'role':'a','content':None}],[],None],pa.list_(pa.struct([('role',pa.string()),('content',pa.string())]))),
 'st':pa.array([{'x':1,'y':{'z':'q'}},{'x':None,'y':None},None],pa.struct([('x',pa.int32()),('y',pa.struct([('z',pa.string())]))])),
 'map':pa.array([[('k',1),('l',2)],[],None],pa.map_(pa.string(),pa.int32())),
 'lnul':pa.array([['a',None],[None],None],pa.list_(pa.string())),
 'dict':pa.array(['x','y','x']).dictionary_encode(),
 'null':pa.array([None,None,None],pa.null()),
})
pq.write_table(types(),f'{out}/types.parquet')
pq.write_table(pa.table({'u64':pa.array([1,2**63+5,None],pa.uint64()),'f16':pa.array(np.array([1.5,-2,float('nan')],dtype=np.float16)),
 'nan':pa.array([float('nan'),float('inf'),1.],pa.float64()),
 'mapls':pa.array([[('k',[1,2])],[],None],pa.map_(pa.string(),pa.list_(pa.int32()))),'mapi':pa.array([[(1,'a')],[],None],pa.map_(pa.int32(),pa.string()))}),f'{out}/other.parquet')
pq.write_table(pa.table({'ts':pa.array([1704067200123456789,0,None],pa.timestamp('ns'))}),f'{out}/int96.parquet',use_deprecated_int96_timestamps=True)
n=200
rng=np.random.default_rng(1)
def rows(n):
    return pa.table({
  'id':pa.array(range(n),pa.int64()),'n':pa.array([None if i%7==0 else int(rng.integers(-1e9,1e9)) for i in range(n)],pa.int32()),
  'x':pa.array([None if i%5==0 else float(rng.normal()) for i in range(n)]),
  'b':pa.array([bool(rng.integers(2)) for i in range(n)]),
  'prompt':pa.array([None if i%11==0 else 'word %d ' % int(rng.integers(50))*int(rng.integers(3)) for i in range(n)]),
  'fix':pa.array([b'%04d'%int(rng.integers(9999)) for i in range(n)],pa.binary(4)),
  'turns':pa.array([[{'role':'user','content':'q%d'%k if k%3 else None} for k in range(int(rng.integers(4)))] if i%6 else None for i in range(n)],pa.list_(pa.struct([('role',pa.string()),('content',pa.string())]))),
 })
t=rows(n)
for codec in ['none','snappy','gzip','brotli','zstd','lz4']:
    pq.write_table(t,f'{out}/{codec}.parquet',compression=codec,data_page_version='2.0' if codec in('gzip','brotli','lz4') else '1.0',data_page_size=600,row_group_size=90)
pq.write_table(t,f'{out}/encodings.parquet',use_dictionary=False,compression='zstd',data_page_size=900,row_group_size=120,data_page_version='2.0',
  column_encoding={'id':'DELTA_BINARY_PACKED','n':'DELTA_BINARY_PACKED','x':'BYTE_STREAM_SPLIT','b':'RLE','prompt':'DELTA_BYTE_ARRAY','fix':'DELTA_BYTE_ARRAY','turns.list.element.role':'DELTA_LENGTH_BYTE_ARRAY','turns.list.element.content':'DELTA_BYTE_ARRAY'})
pq.write_table(t.select(['id','n','fix']),f'{out}/streams.parquet',use_dictionary=False,compression='zstd',column_encoding={c:'BYTE_STREAM_SPLIT' for c in('id','n','fix')})
duckdb.register('t',t)
duckdb.sql(f"copy (select * exclude fix from t) to '{out}/duckdb.parquet' (format parquet, row_group_size 2048)")
duckdb.sql(f"copy (select * exclude fix from t) to '{out}/duckdb2.parquet' (format parquet, parquet_version v2, compression zstd)")
pq.write_table(t.select(['id','prompt','b']).slice(0,40),f'{out}/checksums.parquet',compression='none',data_page_size=200,write_page_checksum=True)
pq.write_table(t.select(['id','n','turns']).slice(0,40),f'{out}/checksums2.parquet',compression='snappy',data_page_size=200,data_page_version='2.0',write_page_checksum=True)
