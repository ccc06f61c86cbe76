CREATE TABLE region (
    r_regionkey int,
    r_name string,
    r_comment string
);

CREATE TABLE nation (
    n_nationkey int,
    n_name string,
    n_regionkey int,
    n_comment string
);

CREATE TABLE supplier (
    s_suppkey bigint,
    s_name string,
    s_address string,
    s_nationkey int,
    s_phone string,
    s_acctbal decimal(15,2),
    s_comment string
);

CREATE TABLE customer (
    c_custkey bigint,
    c_name string,
    c_address string,
    c_nationkey int,
    c_phone string,
    c_acctbal decimal(15,2),
    c_mktsegment string,
    c_comment string
);

CREATE TABLE part (
    p_partkey bigint,
    p_name string,
    p_mfgr string,
    p_brand string,
    p_type string,
    p_size int,
    p_container string,
    p_retailprice decimal(15,2),
    p_comment string
);

CREATE TABLE partsupp (
    ps_partkey bigint,
    ps_suppkey bigint,
    ps_availqty int,
    ps_supplycost decimal(15,2),
    ps_comment string
);

CREATE TABLE orders (
    o_orderkey bigint,
    o_custkey bigint,
    o_orderstatus string,
    o_totalprice decimal(15,2),
    o_orderdate date,
    o_orderpriority string,
    o_clerk string,
    o_shippriority int,
    o_comment string
);

CREATE TABLE lineitem (
    l_orderkey bigint,
    l_partkey bigint,
    l_suppkey bigint,
    l_linenumber int,
    l_quantity decimal(15,2),
    l_extendedprice decimal(15,2),
    l_discount decimal(15,2),
    l_tax decimal(15,2),
    l_returnflag string,
    l_linestatus string,
    l_shipdate date,
    l_commitdate date,
    l_receiptdate date,
    l_shipinstruct string,
    l_shipmode string,
    l_comment string
);
